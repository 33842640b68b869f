-- What happened to accounts in the hour that runs, as this seat has it.
-- Index: the primary key.
insert into tidegate.account_tallies (
  seat, account_no, hour, accepted, delivered, dead_letter, expired, cancelled, attempts, successes, timeouts
)
select $1, c.*
from unnest(
  $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::bigint[], $11::bigint[]
) as c
on conflict (account_no, seat) do update
set
  hour = excluded.hour, accepted = excluded.accepted, delivered = excluded.delivered, dead_letter =
  excluded.dead_letter, expired = excluded.expired, cancelled = excluded.cancelled, attempts = excluded.attempts,
  successes = excluded.successes, timeouts = excluded.timeouts
