-- One of the single texts.
-- Index: the primary key.
select value
from tidegate.marks
where name = $1
