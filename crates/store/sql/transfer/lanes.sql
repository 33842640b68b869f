-- The state behind the gates of lanes, and what their timeouts have learned. Nothing is in flight; it was stored when the
-- last number was given, or before.
-- Index: the primary keys.
select a.destination_no, (select value >> 20 from meta where name = 'sequence') as saved_at, 0 as in_flight, l.state,
  t.timeouts
from (
  select destination_no from lanes where state is not null
  union
  select destination_no from lane_timeouts
) a
left join lanes l on l.destination_no = a.destination_no
left join lane_timeouts t on t.destination_no = a.destination_no
where a.destination_no > ?1
order by a.destination_no
