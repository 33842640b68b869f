-- Deliveries of a destination that are not filed yet, newest first: few are, and all of these are looked at.
-- Index: the primary keys.
select d.seq, d.salt, d.event_seq, d.account_no, d.destination_no, d.type_no, d.plan_no, d.priority, d.occurred_at, d.accepted_at,
  d.expires_at, d.too_old_at, d.ordering_key, d.attempts_made, d.attempts_used, d.stage, d.retry_at, d.retry_reason,
  d.end_code, d.finished_at, d.replay_of, e.salt, e.deliver_at, e.external_id
from deliveries d
join events e on e.seq = d.event_seq
where d.seq > (select value from meta where name = 'filed') and d.seq < ?2 and d.destination_no = ?1
order by d.seq desc
limit ?3
