-- One of the single numbers.
-- Index: the primary key.
select value
from tidegate.meta
where name = $1
