-- Events that retention looks at again.
-- Index: the primary key.
select at, event_seq
from tidegate.forget_later
where at < $1
order by at, event_seq
limit $2
