-- All that is known of event types, at start.
-- Index: the primary key.
select account_no, event_type, document, version, updated_at
from tidegate.event_types
order by account_no, event_type
