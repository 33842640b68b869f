-- The open deliveries of a destination that were accepted first.
-- Index: deliveries_by_destination.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at, expires_at,
  too_old_at, ordering_key, attempts_made, attempts_used, stage, retry_at, retry_reason, end_code, finished_at,
  replay_of
from deliveries
where destination_no = ?1 and stage = 0
order by seq
limit ?2
