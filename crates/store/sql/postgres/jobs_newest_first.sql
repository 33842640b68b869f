-- Jobs of an account, newest first.
-- Index: jobs_of_account.
select id, account_no, kind, request, created_at, state, position, total, done, skipped, finished_at, no
from tidegate.jobs
where account_no = $1 and kind = $2 and no < $3
order by no desc
limit $4
