-- Deliveries of a destination that are filed, oldest first.
-- Index: the primary keys.
select d.seq, d.salt, d.event_seq, d.account_no, d.destination_no, d.type_no, d.plan_no, d.priority, d.occurred_at, d.accepted_at,
  d.expires_at, d.too_old_at, d.ordering_key, d.attempts_made, d.attempts_used, d.stage, d.retry_at, d.retry_reason,
  d.end_code, d.finished_at, d.replay_of, e.salt, e.deliver_at, e.external_id
from deliveries_filed f
cross join deliveries d on d.seq = f.seq
join events e on e.seq = d.event_seq
where f.destination_no = ?1 and f.seq > ?2
order by f.seq
limit ?3
