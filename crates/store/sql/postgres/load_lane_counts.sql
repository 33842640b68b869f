-- Kept counts of a seat, at start.
-- Index: the primary key.
select destination_no, account_no, open, bytes, hour, accepted, delivered, dead_letter, expired, cancelled, attempts,
  successes, timeouts
from tidegate.lane_counts
where seat = $1
order by destination_no
