-- The numbers of what is ready, up to so many.
-- Index: open_deliveries_ready.
select seq
from tidegate.open_deliveries
where destination_no = $1 and retry_at is null
limit $2
