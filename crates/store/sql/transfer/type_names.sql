-- Names that many rows share.
-- Index: the primary key.
select no, name
from type_names
where no > ?1
order by no
