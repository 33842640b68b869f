-- What is ready of one priority and type, in its order, from a place on.
-- Index: open_deliveries_ready.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, attempts_made, attempts_used, 0::bigint as stage, retry_at, retry_reason,
  null::text as end_code, null::bigint as finished_at, replay_of, event_salt, deliver_at, external_id
from tidegate.open_deliveries
where destination_no = $1 and retry_at is null and (ordering_key is null)::int = $2
  and priority = $3 and type_no = $4 and (occurred_at, seq) > ($5, $6)
order by occurred_at, seq
limit $7
