-- Lanes of slots (a byte for each), as they were last stored, with what is open of all seats.
-- Index: the primary keys.
with wanted as (
  select get_byte($1::bytea, place) as slot
  from generate_series(0, octet_length($1::bytea) - 1) as place
),
counted as (
  select c.destination_no, sum(c.open)::bigint as open
  from tidegate.lane_counts c
  where (c.destination_no & 255) in (select slot from wanted)
  group by c.destination_no
)
select c.destination_no, c.open, l.state, l.timeouts, l.saved_at, l.in_flight
from counted c
left join tidegate.lanes l on l.destination_no = c.destination_no
order by c.destination_no
