-- open -> open, under the epoch of the slot: back in its place, or waiting for its own time.
-- Index: slots_pkey, open_deliveries_pkey.
update tidegate.open_deliveries d
set attempts_made = w.attempts_made, attempts_used = w.attempts_used, retry_at = w.retry_at, retry_reason = w.retry_reason
from unnest(
  $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]
) as w (seq, slot, epoch, attempts_made, attempts_used, retry_at, retry_reason)
cross join lateral (
  select from tidegate.slots s where s.slot = w.slot and s.epoch = w.epoch and s.owner = $1 limit 1
) s
where d.seq = w.seq
returning d.seq
