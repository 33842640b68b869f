-- The log of notices.
-- Index: the primary key.
select no, destination_no, at, kind, detail
from notices
where no > ?1
order by no
