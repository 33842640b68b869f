-- The replays of some events, whose numbers are a list with commas.
-- Index: open_deliveries_of_event, deliveries_replays.
select event_seq, destination_no, seq
from tidegate.open_deliveries
where event_seq = any (string_to_array($1, ',')::bigint[]) and replay_of is not null
union all
select event_seq, destination_no, seq
from tidegate.deliveries
where event_seq = any (string_to_array($1, ',')::bigint[]) and replay_of is not null
