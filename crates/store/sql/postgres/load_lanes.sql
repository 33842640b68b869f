-- All lanes, at start.
-- Index: the primary keys.
select c.destination_no, c.account_no, c.open, c.bytes, c.hour, c.accepted, c.delivered, c.dead_letter, c.expired,
  c.cancelled, c.attempts, c.successes, c.timeouts, l.state, l.timeouts
from tidegate.lane_counts c
left join tidegate.lanes l on l.destination_no = c.destination_no
order by c.destination_no
