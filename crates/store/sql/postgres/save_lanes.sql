-- Lanes with a new state, or new timeouts; what is not new stays.
-- Index: the primary key.
insert into tidegate.lanes as l (destination_no, state, timeouts, saved_at, in_flight)
select *
from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
on conflict (destination_no) do update
set state = coalesce(excluded.state, l.state), timeouts = coalesce(excluded.timeouts, l.timeouts),
  saved_at = excluded.saved_at, in_flight = excluded.in_flight
