-- One of the single numbers, if it is not there.
-- Index: the primary key.
insert into tidegate.meta (name, value)
values ($1, $2)
on conflict do nothing
