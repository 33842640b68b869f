-- The partitions of events, by the first number of each.
-- Index: none is looked at.
select substr(c.relname, 8)::bigint as first
from pg_catalog.pg_inherits i
join pg_catalog.pg_class c on c.oid = i.inhrelid
where i.inhparent = 'tidegate.events'::regclass and c.relname ~ '^events_[0-9]+$'
order by first
