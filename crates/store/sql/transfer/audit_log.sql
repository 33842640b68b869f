-- The audit log.
-- Index: the primary key.
select seq, account_no, at, actor, action, subject, detail
from audit_log
where seq > ?1
order by seq
