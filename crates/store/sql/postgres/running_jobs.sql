-- Jobs to go on with after a start.
-- Index: jobs_running.
select id, account_no, kind, request, created_at, state, position, total, done, skipped, finished_at, no
from tidegate.jobs
where state = 0
order by no
