-- Events of the outbox that are accepted.
-- Index: the primary key.
delete from tidegate.outbox
where no = any($1::bigint[])
