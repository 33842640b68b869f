-- Keys that count no longer.
-- Index: idempotency_keys_by_time.
delete from tidegate.idempotency_keys
where (account_no, endpoint, key) in (
  select account_no, endpoint, key from tidegate.idempotency_keys where at < $1 order by at limit $2
)
