-- Notes were looked at.
-- Index: the primary key.
delete from tidegate.forget_later
where (at, event_seq) in (select * from unnest($1::bigint[], $2::bigint[]))
