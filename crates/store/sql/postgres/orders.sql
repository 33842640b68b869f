-- Orders, by their numbers.
-- Index: the primary key.
select no, destination_no, body
from tidegate.orders
where no = any($1::bigint[])
order by no
