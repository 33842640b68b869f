-- The highest number that was ever given, and the groups of each seat.
-- Index: the primary key.
select seat, sequence, groups
from tidegate.seats
order by seat
