-- How many attempts for a destination there are, counted so far.
-- Index: attempts_of_destination.
select count(*)
from (select 1 from tidegate.attempts where destination_no = $1 limit $2) as counted
