-- Rows of the hold log that began before a place, newest first.
-- Index: holds_of_destination.
select reason, since, until, no
from holds
where destination_no = ?1 and (since, no) < (?2, ?3)
order by since desc, no desc
limit ?4
