-- What is ready in the line of one key, in the order of its turns.
-- Index: open_deliveries_keyed.
select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, attempts_made, attempts_used, 0::bigint as stage, retry_at, retry_reason,
  null::text as end_code, null::bigint as finished_at, replay_of, event_salt, deliver_at, external_id
from tidegate.open_deliveries
where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
  and ordering_key = $2 and (retry_at is null)::int = 1
order by (attempts_made = 0)::int, occurred_at, seq
limit $3
