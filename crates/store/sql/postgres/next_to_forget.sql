-- The next events that retention has not looked at, in the order of acceptance.
-- Index: the primary key.
select seq
from tidegate.events
where seq >= $1 and seq < $2
order by seq
limit $3
