-- The first key that has a line.
-- Index: open_deliveries_keyed.
select ordering_key
from tidegate.open_deliveries
where destination_no = $1 and ordering_key is not null and (retry_at is null or retry_reason = 1)
order by ordering_key
limit 1
