-- The replays of some events, whose numbers are a list with commas.
-- Index: deliveries_replays.
select d.event_seq, d.destination_no, d.seq
from json_each('[' || ?1 || ']') as keys
cross join deliveries d on d.event_seq = keys.value and d.replay_of is not null
