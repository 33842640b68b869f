-- The latest time of their own that deliveries of a destination wait for.
-- Index: open_deliveries_waiting.
select retry_at
from tidegate.open_deliveries
where destination_no = $1 and retry_at is not null
order by retry_at desc
limit 1
