-- Deliveries of a destination that are final, oldest first.
-- Index: deliveries_of_destination.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, attempts_made, attempts_used, stage::bigint as stage, null::bigint as retry_at,
  null::smallint as retry_reason, end_code, finished_at, replay_of, event_salt, deliver_at, external_id
from tidegate.deliveries
where destination_no = $1 and seq > $2
order by seq
limit $3
