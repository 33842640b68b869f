-- The last event with this external id.
-- Index: events_by_external_id.
select seq, salt, payload_hash, accepted_at, routed
from events
where account_no = ?1 and external_id = ?2 and type_no = ?3
order by seq desc
limit 1
