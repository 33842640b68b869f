-- Whether something waits for its own time although that has come.
-- Index: open_deliveries_waiting.
select retry_at
from tidegate.open_deliveries
where destination_no = $1 and retry_at is not null and retry_at <= $2
order by retry_at
limit 1
