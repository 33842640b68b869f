-- A line of the audit log.
-- Index: none is looked at.
insert into tidegate.audit_log (account_no, at, actor, action, subject, detail)
values ($1, $2, $3, $4, $5, $6)
