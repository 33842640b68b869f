-- Open deliveries whose end has come: stale, or too old.
-- Index: deliveries_ending.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at, expires_at,
  too_old_at, ordering_key, attempts_made, attempts_used, stage, retry_at, retry_reason, end_code, finished_at,
  replay_of
from deliveries
where stage = 0 and min(too_old_at, ifnull(expires_at, too_old_at)) <= ?1
order by min(too_old_at, ifnull(expires_at, too_old_at)), seq
limit ?2
