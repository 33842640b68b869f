-- Lanes with a new state, or new timeouts; what is not new stays.
-- Index: the primary key.
insert into tidegate.lanes as l (destination_no, state, timeouts)
select *
from unnest($1::bigint[], $2::bytea[], $3::bytea[])
on conflict (destination_no) do update
set state = coalesce(excluded.state, l.state), timeouts = coalesce(excluded.timeouts, l.timeouts)
