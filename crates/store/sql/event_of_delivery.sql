-- The event of a delivery.
-- Index: the primary key.
select salt, event_seq
from deliveries
where seq = ?1
