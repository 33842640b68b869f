-- One event.
-- Index: the primary key.
select seq, salt, type_no, accepted_at, body_kind, content_type, payload, account_no, occurred_at, expires_at, deliver_at,
  ordering_key, priority, external_id, routed
from tidegate.events
where seq = $1
