-- Whose a destination is, deleted or not.
-- Index: the primary key.
select account_no
from tidegate.destinations
where no = $1
