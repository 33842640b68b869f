-- How many of a destination were tried and wait for their retry, counted up to a limit.
-- Index: open_deliveries_tried.
select count(*)
from (
  select 1
  from tidegate.open_deliveries
  where destination_no = $1 and attempts_made > 0 and (retry_at is not null)::int = 1
  limit $2
) as looked_at
