-- Whether something is known of an event type.
-- Index: the primary key.
select 1
from tidegate.event_types
where account_no = $1 and event_type = $2
