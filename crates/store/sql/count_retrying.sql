-- How many of a destination were tried and wait for their retry, counted up to a limit.
-- Index: deliveries_tried.
select count(*)
from (
  select 1
  from deliveries indexed by deliveries_tried
  where destination_no = ?1 and stage = 0 and attempts_made > 0 and (retry_at is not null) = 1
  limit ?2
)
