-- A node sits down; waits for a group of whoever sat there.
-- Index: the primary key.
update tidegate.seats
set node_no = $2
where seat = $1
returning groups
