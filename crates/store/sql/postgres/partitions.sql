-- The partitions of events, by the first number of each; whether it still is one, or was detached and is to be dropped.
-- Index: none is looked at.
select substr(relname, 8)::bigint as first, relispartition
from pg_catalog.pg_class
where relnamespace = 'tidegate'::regnamespace and relkind = 'r' and relname ~ '^events_[0-9]+$'
order by first
