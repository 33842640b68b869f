-- The numbers of open deliveries whose end has come, and their destinations, up to so many.
-- Index: deliveries_ending.
select seq, destination_no
from deliveries
where stage = 0 and min(too_old_at, ifnull(expires_at, too_old_at)) <= ?1
limit ?2
