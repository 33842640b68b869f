-- Events that may go: nobody replays them until the commit, and what somebody has replayed by now is seen.
-- Index: the primary key.
select seq
from tidegate.events
where seq = any($1::bigint[])
order by seq
for update
