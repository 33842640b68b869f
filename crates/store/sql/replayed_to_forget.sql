-- Events in a range that were replayed.
-- Index: deliveries_replays.
select event_seq
from deliveries
where event_seq between ?1 and ?2 and replay_of is not null
