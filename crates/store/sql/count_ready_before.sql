-- How many of one priority and type are ready before a place, up to some number.
-- Index: deliveries_ready.
select count(*)
from (
  select 1
  from deliveries
  where destination_no = ?1 and stage = 0 and retry_at is null and (ordering_key is null) = ?2
    and priority = ?3 and type_no = ?4 and (occurred_at, seq) < (?5, ?6)
  limit ?7
)
