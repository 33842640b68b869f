-- The columns of all tables, each with its type.
-- Index: none of ours is looked at.
select c.relname::text, a.attname::text, format_type(a.atttypid, null)
from pg_catalog.pg_class c
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'tidegate'::regnamespace and c.relkind in ('r', 'p')
order by c.relname, a.attnum
