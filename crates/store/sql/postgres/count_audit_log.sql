-- How many lines an account's audit log has, counted so far.
-- Index: audit_log_of_account.
select count(*)
from (select 1 from tidegate.audit_log where account_no = $1 limit $2) as counted
