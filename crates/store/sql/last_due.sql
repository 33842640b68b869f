-- The latest time of their own that deliveries of a destination wait for.
-- Index: deliveries_waiting.
select retry_at
from deliveries indexed by deliveries_waiting
where destination_no = ?1 and stage = 0 and retry_at is not null
order by retry_at desc
limit 1
