-- Where an event's deliveries lie.
-- Index: the primary key.
select salt, first_delivery, routed
from events
where seq = ?1
