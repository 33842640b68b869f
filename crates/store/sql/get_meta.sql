-- One of the single numbers.
-- Index: the primary key.
select value
from meta
where name = ?1
