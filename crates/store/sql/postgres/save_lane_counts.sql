-- Kept counts of destinations, as this seat has them.
-- Index: the primary key.
insert into tidegate.lane_counts (
  seat, destination_no, account_no, open, bytes, hour, accepted, delivered, dead_letter, expired, cancelled, attempts,
  successes, timeouts
)
select $1, c.*
from unnest(
  $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[]
) as c
on conflict (destination_no, seat) do update
set
  open = excluded.open, bytes = excluded.bytes, hour = excluded.hour, accepted = excluded.accepted, delivered =
  excluded.delivered, dead_letter = excluded.dead_letter, expired = excluded.expired, cancelled = excluded.cancelled,
  attempts = excluded.attempts, successes = excluded.successes, timeouts = excluded.timeouts
