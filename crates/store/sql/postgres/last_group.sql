-- The last group that this node has committed; waits until one that is still being written has ended.
-- Index: the primary key.
select groups
from tidegate.nodes
where no = $1
for update
