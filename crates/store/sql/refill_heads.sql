-- Lines in the order of their keys, from one on: the last retry that waits in each (while there is one, the line waits), and
-- the priority and type of the first that is ready: a skip scan.
-- Index: deliveries_keyed.
with recursive keys (key) as (
  select ?2
  union all
  select (
    select min(ordering_key)
    from deliveries
    where destination_no = ?1 and stage = 0 and ordering_key is not null and (retry_at is null or retry_reason = 1)
      and ordering_key > key
  )
  from keys
  where key is not null
  limit ?3
)
select key, (
  select max(retry_at)
  from deliveries
  where destination_no = ?1 and stage = 0 and ordering_key is not null and (retry_at is null or retry_reason = 1)
    and ordering_key = key and (retry_at is null) = 0
), h.priority, h.type_no
from keys
left join deliveries h on h.seq = (
  select seq
  from deliveries
  where destination_no = ?1 and stage = 0 and ordering_key is not null and (retry_at is null or retry_reason = 1)
    and ordering_key = key and (retry_at is null) = 1
  order by (attempts_made = 0), occurred_at, seq
  limit 1
)
where key is not null
