-- Whether something waits for its own time although that has come.
-- Index: deliveries_waiting.
select retry_at
from deliveries
where destination_no = ?1 and stage = 0 and retry_at is not null and retry_at <= ?2
order by retry_at
limit 1
