-- The log of holds.
-- Index: the primary key.
select no, destination_no, reason, since, until
from holds
where no > ?1
order by no
