-- Open deliveries whose end has come, stale or too old, of slots (a byte for each).
-- Index: open_deliveries_ending.
select d.*
from generate_series(0, octet_length($3::bytea) - 1) as place
cross join lateral (
  select seq, salt, event_seq, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
    expires_at, too_old_at, ordering_key, attempts_made, attempts_used, 0::bigint as stage, retry_at, retry_reason,
    null::text as end_code, null::bigint as finished_at, replay_of, event_salt, deliver_at, external_id
  from tidegate.open_deliveries
  where (destination_no & 255) = get_byte($3::bytea, place) and least(too_old_at, expires_at) <= $1
  order by least(too_old_at, expires_at), seq
  limit $2
) d
order by least(d.too_old_at, d.expires_at), d.seq
limit $2
