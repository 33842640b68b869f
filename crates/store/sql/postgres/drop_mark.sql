-- One of the single texts goes.
-- Index: the primary key.
delete from tidegate.marks
where name = $1
