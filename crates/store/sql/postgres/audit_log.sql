-- Lines of an account's audit log, newest first.
-- Index: audit_log_of_account.
select seq, at, actor, action, subject, detail
from tidegate.audit_log
where account_no = $1 and seq < $2
order by seq desc
limit $3
