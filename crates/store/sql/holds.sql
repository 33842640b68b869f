-- Rows of the hold log that began before a time, newest first.
-- Index: holds_of_destination.
select reason, since, until
from holds
where destination_no = ?1 and since < ?2
order by since desc
limit ?3
