-- One lane, as it was last stored, with what is open of all seats.
-- Index: the primary keys.
select c.destination_no, c.open, l.state, l.timeouts, l.saved_at, l.in_flight
from (
  select destination_no, sum(open)::bigint as open
  from tidegate.lane_counts
  where destination_no = $1
  group by destination_no
) c
left join tidegate.lanes l on l.destination_no = c.destination_no
