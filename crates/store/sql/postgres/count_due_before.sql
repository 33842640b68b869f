-- How many that wait for a time of their own will be due by then and go before a place, among the first so many; and how many
-- were looked at.
-- Index: open_deliveries_waiting.
select count(*) filter (where (priority, occurred_at, seq) < ($3, $4, $5)), count(*)
from (
  select priority, occurred_at, seq
  from tidegate.open_deliveries
  where destination_no = $1 and retry_at is not null and retry_at <= $2
  order by retry_at
  limit $6
) as looked_at
