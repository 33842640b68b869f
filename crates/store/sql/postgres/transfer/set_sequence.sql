-- The highest number of acceptance that was given so far: every node goes on after it.
-- Index: the primary key.
update tidegate.seats
set sequence = $1
where seat = 0
