-- Whether a destination is there and not deleted.
-- Index: the primary key.
select 1
from tidegate.destinations
where no = $1 and not deleted
