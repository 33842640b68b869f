-- Where an event's deliveries lie.
-- Index: the primary key.
select salt, first_delivery, routed
from tidegate.events
where seq = $1
