-- What would have to be moved if the partition of the numbers from {first} up to {next} went now, counted so far: deliveries, and
-- their bytes. drop_partition has the same conditions.
-- Index: open_deliveries_of_event, deliveries_by_end, deliveries_replays, the primary key.
select count(*), coalesce(sum(bytes), 0)::bigint
from (
  select bytes
  from tidegate.open_deliveries
  where event_seq >= {first} and event_seq < {next}
  union all
  select bytes
  from tidegate.deliveries_{first}
  where finished_at >= $1
  union all
  select bytes
  from tidegate.deliveries
  where event_seq >= {first} and event_seq < {next} and replay_of is not null and seq >= {next} and finished_at >= $1
  union all
  select bytes
  from tidegate.deliveries
  where seq >= {next} and seq < {next} + 1048576 and event_seq >= {first} and event_seq < {next} and finished_at >= $1
  union all
  select bytes
  from tidegate.deliveries_{first}
  where replay_of is not null and event_seq < {first}
  union all
  select bytes
  from tidegate.deliveries_{first}
  where seq < {first} + 1048576 and event_seq < {first} and replay_of is null
  limit $2
) as moved
