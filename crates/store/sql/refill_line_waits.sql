-- The last retry that waits in the line of one key: while there is one, the line waits.
-- Index: deliveries_keyed.
select max(retry_at)
from deliveries
where destination_no = ?1 and stage = 0 and ordering_key is not null and (retry_at is null or retry_reason = 1)
  and ordering_key = ?2 and (retry_at is null) = 0
