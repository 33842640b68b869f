-- One lane, as it was last stored.
-- Index: the primary keys.
select l.destination_no, l.open, l.state, t.timeouts, null, null
from lanes l
left join lane_timeouts t on t.destination_no = l.destination_no
where l.destination_no = ?1
