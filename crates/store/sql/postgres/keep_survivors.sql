-- Events that stay when their partition goes.
-- Index: the primary key.
insert into tidegate.forget_kept (event_seq)
select unnest($1::bigint[])
