-- The name of an event type.
-- Index: the primary key.
select name
from tidegate.type_names
where no = $1
