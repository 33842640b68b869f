-- Names that no event had before.
-- Index: the unique one.
insert into tidegate.type_names (name)
select unnest($1::text[])
on conflict do nothing
