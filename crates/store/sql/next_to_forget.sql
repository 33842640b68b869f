-- Events that retention has not passed yet.
-- Index: the primary key.
select seq, first_delivery, routed, accepted_at, external_id is not null
from events
where seq > ?1
order by seq
limit ?2
