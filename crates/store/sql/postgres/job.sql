-- One job.
-- Index: the primary key.
select id, account_no, kind, request, created_at, state, position, total, done, skipped, finished_at, no
from tidegate.jobs
where id = $1 and account_no = $2
