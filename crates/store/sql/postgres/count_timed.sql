-- How many of a destination wait for a time of their own, counted up to a limit.
-- Index: open_deliveries_waiting.
select count(*)
from (
  select 1
  from tidegate.open_deliveries
  where destination_no = $1 and retry_at is not null and retry_at > $2
  limit $3
) as looked_at
