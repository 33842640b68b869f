-- Ranges of numbers that retention has not passed and of which events lie in the default partition.
-- Index: the primary key.
select distinct seq / $2 * $2
from tidegate.events_kept
where seq >= $1
