-- What is ready of one priority and type, in its order, from a place on.
-- Index: deliveries_ready.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at, expires_at,
  too_old_at, ordering_key, attempts_made, attempts_used, stage, retry_at, retry_reason, end_code, finished_at,
  replay_of
from deliveries
where destination_no = ?1 and stage = 0 and retry_at is null and (ordering_key is null) = ?2
  and priority = ?3 and type_no = ?4 and (occurred_at, seq) > (?5, ?6)
order by occurred_at, seq
limit ?7
