-- One of the single texts, if it is not there.
-- Index: the primary key.
insert into tidegate.marks (name, value)
values ($1, $2)
on conflict do nothing
