-- How many of a destination wait for a time of their own, counted up to a limit.
-- Index: deliveries_waiting.
select count(*)
from (
  select 1
  from deliveries indexed by deliveries_waiting
  where destination_no = ?1 and stage = 0 and retry_at is not null and retry_at > ?2
  limit ?3
)
