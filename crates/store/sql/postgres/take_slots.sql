-- Slots pass to a node under new epochs. Says whether the owner before had given them up by itself.
-- Index: the primary key.
with before as (
  select slot, clean
  from tidegate.slots
  order by slot
  for update
)
update tidegate.slots s
set owner = $1, epoch = s.epoch + 1, clean = false
from before b
where b.slot = s.slot
returning s.slot, s.epoch, b.clean
