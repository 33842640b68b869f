-- The numbers of names.
-- Index: type_names_by_name.
select no, name
from tidegate.type_names
where name = any($1::text[])
