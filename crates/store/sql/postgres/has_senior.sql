-- Whether a node is there that was there before this one.
-- Index: the primary key.
select 1
from tidegate.nodes
where no < $1 and lease_until > clock_timestamp()
limit 1
