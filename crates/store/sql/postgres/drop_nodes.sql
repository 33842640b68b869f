-- Nodes whose leases ended so many milliseconds ago: nothing of theirs is written any more, and their seats are free.
-- Index: none: nodes are few.
with gone as (
  delete from tidegate.nodes
  where lease_until <= clock_timestamp() - $1 * interval '1 millisecond'
  returning no
)
update tidegate.seats s
set node_no = null
from gone g
where s.node_no = g.no
