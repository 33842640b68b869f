-- All slots.
-- Index: the primary key.
select slot, owner, epoch
from tidegate.slots
order by slot
