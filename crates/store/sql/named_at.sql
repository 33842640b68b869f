-- When an event was accepted that has a name of its publisher's.
-- Index: the primary key.
select accepted_at
from events
where seq = ?1 and external_id is not null
