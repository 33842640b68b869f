-- Events.
-- Index: the primary key.
select seq, salt, accepted_at, occurred_at, expires_at, deliver_at, first_delivery, account_no, type_no, routed, priority,
  body_kind, ordering_key, external_id, content_type, payload
from events
where seq > ?1
order by seq
