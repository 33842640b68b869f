-- A lease is extended, also one that had ended, by so many milliseconds. Waits for whoever takes the node's slots: what is
-- read next shows that.
-- Index: the primary key.
update tidegate.nodes
set lease_until = clock_timestamp() + $2 * interval '1 millisecond', leaving = $3 <> 0
where no = $1
