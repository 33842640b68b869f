-- How many jobs of a kind an account has, counted so far.
-- Index: jobs_of_account.
select count(*)
from (select 1 from tidegate.jobs where account_no = $1 and kind = $2 limit $3) as counted
