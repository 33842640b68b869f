-- Jobs. Those that run belong to no node: the first one takes them over.
-- Index: the primary key.
select id, no, 0 as node_no, account_no, kind, state, request, created_at, position, total, done, skipped, finished_at
from jobs
where id > ?1
order by id
