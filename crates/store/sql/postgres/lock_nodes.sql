-- All nodes: whoever writes results has finished, or will see the new epochs.
-- Index: the primary key.
select no, sequence
from tidegate.nodes
order by no
for update
