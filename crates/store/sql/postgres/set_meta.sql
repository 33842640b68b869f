-- One of the single numbers.
-- Index: the primary key.
insert into tidegate.meta (name, value)
values ($1, $2)
on conflict (name) do update
set value = excluded.value
