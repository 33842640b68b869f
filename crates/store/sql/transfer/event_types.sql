-- Event types.
-- Index: the primary key.
select account_no, event_type, document, version, updated_at
from event_types
where (account_no, event_type) > (?1, ?2)
order by account_no, event_type
