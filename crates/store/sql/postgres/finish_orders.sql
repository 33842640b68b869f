-- Orders that are carried out, by the node that works their destinations.
-- Index: the primary keys.
delete from tidegate.orders o
using tidegate.slots s
where o.no = any($2::bigint[]) and s.slot = (o.destination_no & 255) and s.owner = $1
