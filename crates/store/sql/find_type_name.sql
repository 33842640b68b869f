-- The number of an event type's name.
-- Index: the unique one.
select no
from type_names
where name = ?1
