-- The numbers of what waits for its own time.
-- Index: deliveries_waiting.
select seq
from deliveries indexed by deliveries_waiting
where destination_no = ?1 and stage = 0 and retry_at is not null
