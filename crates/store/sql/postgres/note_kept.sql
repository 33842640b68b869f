-- Events of a range of numbers that never had a partition of its own: retention looks at each of them.
-- Index: the primary keys.
insert into tidegate.forget_later (at, event_seq)
select 0, seq
from tidegate.events_kept
where seq >= $1 and seq < $2
on conflict do nothing
