-- The number of an event type's name.
-- Index: type_names_by_name.
select no
from tidegate.type_names
where name = $1
