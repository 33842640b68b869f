-- Nodes that have ended: this one takes their place.
-- Index: the primary key.
delete from tidegate.nodes
where no = any($1::bigint[])
