-- One of the single texts, if it still is what it was.
-- Index: the primary key.
update tidegate.marks
set value = $3
where name = $1 and value = $2
