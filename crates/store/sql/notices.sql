-- Rows of a destination's log before a place, newest first.
-- Index: notices_of_destination.
select at, kind, detail, no
from notices
where destination_no = ?1 and at >= ?2 and (at, no) < (?3, ?4)
order by at desc, no desc
limit ?5
