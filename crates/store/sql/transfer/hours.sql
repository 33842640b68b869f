-- Hours that are over.
-- Index: the primary key.
select owner, no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from hours
where (owner, no, hour) > (?1, ?2, ?3)
order by owner, no, hour
