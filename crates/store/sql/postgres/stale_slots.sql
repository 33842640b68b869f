-- Which of these slots are not this node's any more, under these epochs.
-- Index: the primary key.
select w.slot
from unnest($2::bigint[], $3::bigint[]) as w (slot, epoch)
left join tidegate.slots s on s.slot = w.slot and s.epoch = w.epoch and s.owner = $1
where s.slot is null
