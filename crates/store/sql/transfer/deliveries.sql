-- Deliveries that are final, with what lists tell of their event.
-- Index: the primary keys.
select d.seq, d.salt, d.event_seq, e.salt as event_salt, d.occurred_at, d.accepted_at, d.too_old_at, d.bytes, d.finished_at,
  d.expires_at, e.deliver_at, d.account_no, d.destination_no, d.type_no, d.plan_no, d.attempts_made, d.attempts_used,
  d.priority, d.stage, d.end_code, d.ordering_key, e.external_id, d.replay_of
from deliveries d not indexed
left join events e on e.seq = d.event_seq
where d.seq > ?1 and d.stage > 0
order by d.seq
