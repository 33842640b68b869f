-- The numbers of what waits for a time of its own after one moment and up to another, up to so many.
-- Index: deliveries_waiting.
select seq
from deliveries indexed by deliveries_waiting
where destination_no = ?1 and stage = 0 and retry_at is not null and retry_at > ?2 and retry_at <= ?3
limit ?4
