-- Whether an order is still to be carried out.
-- Index: the primary key.
select 1
from tidegate.orders
where no = $1
