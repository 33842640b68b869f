-- External ids: of those events that share one, the last counts. Beside max(), columns are those of the row that has it.
-- Index: events_by_external_id.
select account_no, type_no, external_id, max(seq) as event_seq, salt as event_salt, accepted_at as at, payload_hash
from events
where external_id is not null and (account_no, external_id, type_no) > (?1, ?2, ?3)
group by account_no, external_id, type_no
order by account_no, external_id, type_no
