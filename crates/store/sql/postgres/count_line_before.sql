-- How many of a key are before a place in its line, up to some number.
-- Index: open_deliveries_keyed.
select count(*)
from (
  select 1
  from tidegate.open_deliveries
  where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
    and ordering_key = $2 and (retry_at is null)::int = $3 and (attempts_made = 0)::int = $4
    and (occurred_at, seq) < ($5, $6)
  limit $7
) as before
