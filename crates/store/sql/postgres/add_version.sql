-- All migrations up to this one ran.
-- Index: the primary key.
insert into tidegate.versions (version)
values ($1)
