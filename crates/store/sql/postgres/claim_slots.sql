-- Slots pass to a node under new epochs, if they are nobody's, or already its own (the answer to an earlier claim was lost),
-- or their owner's lease has ended. Says whether the owner before had given them up by itself.
-- Index: the primary keys.
with before as (
  select s.slot, s.clean
  from tidegate.slots s
  where s.slot = any($2::bigint[]) and (
    s.owner is null or s.owner = $1
    or not exists (select from tidegate.nodes n where n.no = s.owner and n.lease_until > transaction_timestamp())
  )
  order by s.slot
  for update
)
update tidegate.slots s
set owner = $1, epoch = s.epoch + 1, clean = false
from before b
where b.slot = s.slot
returning s.slot, s.epoch, b.clean
