-- Whether an event's deliveries are all final, and since when.
-- Index: the primary key.
select count(*) filter (where stage = 0), max(finished_at)
from deliveries
where seq between ?1 and ?2
