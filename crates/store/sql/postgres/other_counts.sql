-- What waits, as all other seats have it.
-- Index: the primary key.
select destination_no, min(account_no), sum(open)::bigint, sum(bytes)::bigint
from tidegate.lane_counts
where seat <> $1
group by destination_no
