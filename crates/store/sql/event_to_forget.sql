-- The deliveries that an event was accepted with.
-- Index: the primary key.
select first_delivery, routed
from events
where seq = ?1
