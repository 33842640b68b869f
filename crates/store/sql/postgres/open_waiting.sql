-- The numbers of what waits for its own time.
-- Index: open_deliveries_waiting.
select seq
from tidegate.open_deliveries
where destination_no = $1 and retry_at is not null
