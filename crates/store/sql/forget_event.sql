-- An event whose deliveries are all old is gone.
-- Index: the primary key.
delete from events
where seq = ?1
