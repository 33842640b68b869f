-- The version of the schema: how many migrations ran.
-- Index: the primary key.
select coalesce(max(version), 0)
from tidegate.versions
