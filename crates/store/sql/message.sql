-- What a delivery sends.
-- Index: the primary keys.
select d.salt, e.seq, e.salt, e.type_no, e.accepted_at, e.body_kind, e.content_type, e.payload
from deliveries d
join events e on e.seq = d.event_seq
where d.seq = ?1
