-- The same for its replays.
-- Index: deliveries_replays.
select seq, stage, finished_at
from deliveries
where event_seq = ?1 and replay_of is not null
