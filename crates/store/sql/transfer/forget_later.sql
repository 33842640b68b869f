-- Events that retention looks at again.
-- Index: the primary key.
select at, event_seq
from forget_later
where (at, event_seq) > (?1, ?2)
order by at, event_seq
