-- All lanes, at start.
-- Index: the primary keys.
select l.destination_no, l.account_no, l.open, l.bytes, l.hour, l.accepted, l.delivered, l.dead_letter, l.expired,
  l.cancelled, l.attempts, l.successes, l.timeouts, l.state, t.timeouts
from lanes l
left join lane_timeouts t on t.destination_no = l.destination_no
order by l.destination_no
