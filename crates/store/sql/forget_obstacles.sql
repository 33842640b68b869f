-- Deliveries in a range of numbers that may not simply go: open or young ones, replays, and those of other events.
-- Index: the primary key.
select seq, event_seq, replay_of is not null
from deliveries
where seq between ?1 and ?2
  and (stage = 0 or finished_at >= ?3 or replay_of is not null or event_seq not between ?4 and ?5)
