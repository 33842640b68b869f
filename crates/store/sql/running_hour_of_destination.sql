-- The hour that runs, of a destination.
-- Index: the primary key.
select hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from lanes
where destination_no = ?1
