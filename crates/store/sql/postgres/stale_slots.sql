-- Which of these slots are not this node's any more, under these epochs.
-- Index: slots_pkey.
select w.slot
from unnest($2::bigint[], $3::bigint[]) as w (slot, epoch)
left join lateral (
  select true as held from tidegate.slots s where s.slot = w.slot and s.epoch = w.epoch and s.owner = $1 limit 1
) s on true
where s.held is null
