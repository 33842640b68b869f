-- A group begins: says that it is this node's next one, and keeps everybody from taking slots from the node until its end.
-- Index: the primary key.
insert into tidegate.nodes as n (no, sequence, groups)
overriding system value
values ($1, $2, $3)
on conflict (no) do update
set sequence = greatest(n.sequence, excluded.sequence), groups = excluded.groups
