-- The events of open deliveries, each once.
-- Index: the primary keys.
select seq, salt, type_no, accepted_at, body_kind, content_type, payload
from tidegate.events
where seq in (select event_seq from tidegate.open_deliveries where seq = any($1::bigint[]))
