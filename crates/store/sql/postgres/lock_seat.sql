-- Where a node sits: what it writes has ended, or will see what is committed now.
-- Index: the primary key.
select groups
from tidegate.seats
where seat = $1 and node_no = $2
for update
