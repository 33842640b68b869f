-- All seats: whoever writes a group has finished, or will see what is committed now.
-- Index: the primary key.
select seat
from tidegate.seats
order by seat
for update
