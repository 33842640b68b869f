-- Brings the index by which young rows are found in the partition of the numbers from {first} up to {next} up to date.
-- Index: none is looked at.
select pg_catalog.brin_summarize_new_values(i.inhrelid)
from pg_catalog.pg_inherits i
join pg_catalog.pg_index x on x.indexrelid = i.inhrelid
where i.inhparent = 'tidegate.deliveries_by_end'::regclass and x.indrelid = 'tidegate.deliveries_{first}'::regclass
