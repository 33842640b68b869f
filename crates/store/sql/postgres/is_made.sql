-- Whether the schema is there at all.
-- Index: none is looked at.
select to_regclass('tidegate.versions') is not null
