-- The event of a delivery.
-- Index: the primary keys.
select salt, event_seq
from tidegate.open_deliveries
where seq = $1
union all
select salt, event_seq
from tidegate.deliveries
where seq = $1
