-- How many of one priority and type are ready before a place, up to some number.
-- Index: open_deliveries_ready.
select count(*)
from (
  select 1
  from tidegate.open_deliveries
  where destination_no = $1 and retry_at is null and (ordering_key is null)::int = $2
    and priority = $3 and type_no = $4 and (occurred_at, seq) < ($5, $6)
  limit $7
) as before
