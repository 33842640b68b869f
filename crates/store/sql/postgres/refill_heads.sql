-- Lines in the order of their keys, from one on: the last retry that waits in each (while there is one, the line waits), and
-- the priority and type of the first that is ready: a skip scan.
-- Index: open_deliveries_keyed.
with recursive keys (key) as (
  select $2::text collate "C"
  union all
  select (
    select min(ordering_key)
    from tidegate.open_deliveries
    where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
      and ordering_key > key
  )
  from keys
  where key is not null
)
select key, (
  select max(retry_at)
  from tidegate.open_deliveries
  where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
    and ordering_key = key and (retry_at is null)::int = 0
), h.priority, h.type_no
from (select key from keys where key is not null limit $3) as few
left join lateral (
  select priority, type_no
  from tidegate.open_deliveries
  where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
    and ordering_key = key and (retry_at is null)::int = 1
  order by (attempts_made = 0)::int, occurred_at, seq
  limit 1
) as h on true
