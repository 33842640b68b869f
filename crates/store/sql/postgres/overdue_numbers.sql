-- The numbers of open deliveries whose end has come, and their destinations, up to so many.
-- Index: open_deliveries_ending.
select d.*
from generate_series(0, 255) as slot
cross join lateral (
  select seq, destination_no
  from tidegate.open_deliveries
  where (destination_no & 255) = slot and least(too_old_at, expires_at) <= $1
  limit $2
) d
limit $2
