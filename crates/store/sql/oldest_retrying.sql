-- Those that were tried and wait for their retry, the oldest first.
-- Index: deliveries_tried.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at, expires_at,
  too_old_at, ordering_key, attempts_made, attempts_used, stage, retry_at, retry_reason, end_code, finished_at,
  replay_of
from deliveries
where destination_no = ?1 and stage = 0 and attempts_made > 0 and (retry_at is not null) = 1
order by occurred_at, seq
limit ?2
