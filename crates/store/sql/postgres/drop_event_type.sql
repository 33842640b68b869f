-- It is gone.
-- Index: the primary key.
delete from tidegate.event_types
where account_no = $1 and event_type = $2
