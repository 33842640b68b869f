-- How many that wait for a time of their own go before a place in the whole line, among the first so many; and how many were
-- looked at. One that was tried keeps its turn, whenever its retry is. $3: whether the delivery was never tried.
-- Index: open_deliveries_waiting.
select
  count(*) filter (
    where (retry_reason = 1 or retry_at <= $2)
      and (($3 = 1 and attempts_made > 0 and seq <> $5) or (occurred_at, seq) < ($4, $5))
  ),
  count(*)
from (
  select retry_at, retry_reason, attempts_made, occurred_at, seq
  from tidegate.open_deliveries
  where destination_no = $1 and retry_at is not null
  order by retry_at
  limit $6
) as looked_at
