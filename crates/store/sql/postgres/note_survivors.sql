-- Events to be looked at again.
-- Index: the primary key.
insert into tidegate.forget_later (at, event_seq)
select *
from unnest($1::bigint[], $2::bigint[])
on conflict do nothing
