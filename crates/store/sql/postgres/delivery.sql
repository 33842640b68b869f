-- One delivery.
-- Index: the primary keys.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, attempts_made, attempts_used, 0::bigint as stage, retry_at, retry_reason,
  null::text as end_code, null::bigint as finished_at, replay_of, event_salt, deliver_at, external_id
from tidegate.open_deliveries
where seq = $1
union all
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, attempts_made, attempts_used, stage::bigint as stage, null::bigint as retry_at,
  null::smallint as retry_reason, end_code, finished_at, replay_of, event_salt, deliver_at, external_id
from tidegate.deliveries
where seq = $1
