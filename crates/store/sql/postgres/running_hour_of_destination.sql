-- The hour that runs, as each seat has it, of a destination.
-- Index: the primary key.
select hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
from tidegate.lane_counts
where destination_no = $1
