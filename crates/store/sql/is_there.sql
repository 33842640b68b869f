-- Whether a delivery is there at all.
-- Index: the primary key.
select 1
from deliveries
where seq = ?1
