-- A name that no event had before.
-- Index: the unique one.
insert into type_names (name)
values (?1)
