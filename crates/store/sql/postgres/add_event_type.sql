-- What is known of an event type, for the first time.
-- Index: the primary key.
insert into tidegate.event_types (account_no, event_type, document, version, updated_at)
values ($1, $2, $3, $4, $5)
on conflict do nothing
