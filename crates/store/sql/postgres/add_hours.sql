-- Hours that are over, or more of those that are.
-- Index: the primary key.
insert into tidegate.hours as h (
  owner, no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
)
select *
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::bigint[], $11::bigint[]
)
on conflict (owner, no, hour) do update
set
  accepted = h.accepted + excluded.accepted, delivered = h.delivered + excluded.delivered, dead_letter =
  h.dead_letter + excluded.dead_letter, expired = h.expired + excluded.expired, cancelled = h.cancelled +
  excluded.cancelled, attempts = h.attempts + excluded.attempts, successes = h.successes + excluded.successes,
  timeouts = h.timeouts + excluded.timeouts
