-- Events in the partition of the numbers from {first} up to {next} that must stay: something of theirs is open, or became final
-- too late. Those of which nothing is open are looked at again when that is old.
-- Index: open_deliveries_of_event, deliveries_by_end, deliveries_replays, the primary key.
select event_seq, max(finished_at), bool_or(is_open)
from (
  select event_seq, null::bigint as finished_at, true as is_open
  from tidegate.open_deliveries
  where event_seq >= {first} and event_seq < {next}
  union all
  select event_seq, finished_at, false
  from tidegate.deliveries_{first}
  where finished_at >= $1 and event_seq >= {first}
  union all
  select event_seq, finished_at, false
  from tidegate.deliveries
  where event_seq >= {first} and event_seq < {next} and replay_of is not null and seq >= {next} and finished_at >= $1
  union all
  select event_seq, finished_at, false
  from tidegate.deliveries
  where seq >= {next} and seq < {next} + 1048576 and event_seq >= {first} and event_seq < {next} and finished_at >= $1
) as found
group by event_seq
