-- The numbers of what is ready, up to so many.
-- Index: deliveries_ready.
select seq
from deliveries indexed by deliveries_ready
where destination_no = ?1 and stage = 0 and retry_at is null
limit ?2
