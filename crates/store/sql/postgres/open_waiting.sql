-- The numbers of what waits for a time of its own after one moment and up to another, up to so many.
-- Index: open_deliveries_waiting.
select seq
from tidegate.open_deliveries
where destination_no = $1 and retry_at is not null and retry_at > $2 and retry_at <= $3
limit $4
