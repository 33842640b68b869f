-- A node, which gives numbers above all that were ever given.
-- Index: none is looked at.
insert into tidegate.nodes (sequence, groups)
values ($1, 0)
returning no
