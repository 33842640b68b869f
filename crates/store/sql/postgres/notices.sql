-- Rows of a destination's log, newest first.
-- Index: notices_of_destination.
select at, kind, detail
from tidegate.notices
where destination_no = $1 and at >= $2 and at < $3
order by at desc
limit $4
