-- open, waiting for its own time -> open, ready: what came due, some at a time.
-- Index: open_deliveries_waiting.
update tidegate.open_deliveries
set retry_at = null, retry_reason = null
where seq in (
  select seq
  from tidegate.open_deliveries
  where destination_no = $1 and retry_at is not null and retry_at <= $2
  order by retry_at, seq
  limit $3
)
