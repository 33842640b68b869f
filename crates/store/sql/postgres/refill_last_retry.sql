-- Whether a delivery that was tried waits for its retry, from a time on: it has the turn in the whole line.
-- Index: open_deliveries_tried.
select retry_at
from tidegate.open_deliveries
where destination_no = $1 and attempts_made > 0 and (retry_at is not null)::int = 1
  and retry_reason = 1 and retry_at >= $2
limit 1
