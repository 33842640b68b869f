-- The schema, and in it the place where its version is written down.
-- Index: none is looked at.
create schema if not exists tidegate;
create table if not exists tidegate.versions (version bigint primary key)
