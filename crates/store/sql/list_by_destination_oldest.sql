-- All deliveries of a destination, oldest first.
-- Index: deliveries_by_destination.
select d.seq, d.salt, d.event_seq, d.account_no, d.destination_no, d.type_no, d.plan_no, d.priority, d.occurred_at, d.accepted_at,
  d.expires_at, d.too_old_at, d.ordering_key, d.attempts_made, d.attempts_used, d.stage, d.retry_at, d.retry_reason,
  d.end_code, d.finished_at, d.replay_of, e.salt, e.deliver_at, e.external_id
from deliveries d
join events e on e.seq = d.event_seq
where d.destination_no = ?1 and d.seq > ?2
order by d.seq
limit ?3
