-- Its event types with it.
-- Index: the primary key.
delete from event_types
where account_no = ?1
