-- One of the single numbers.
-- Index: the primary key.
insert or replace into meta (name, value)
values (?1, ?2)
