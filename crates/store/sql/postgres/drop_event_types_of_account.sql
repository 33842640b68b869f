-- Its event types with it.
-- Index: the primary key.
delete from tidegate.event_types
where account_no = $1
