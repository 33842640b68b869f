-- A node has left, and its seat is free.
-- Index: the primary key.
with gone as (
  delete from tidegate.nodes
  where no = $1
  returning no
)
update tidegate.seats s
set node_no = null
from gone g
where s.node_no = g.no
