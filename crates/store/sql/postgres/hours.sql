-- Hours that are over.
-- Index: the primary key.
select hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from tidegate.hours
where owner = $1 and no = $2 and hour >= $3
order by hour
