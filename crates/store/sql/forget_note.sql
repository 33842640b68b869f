-- A note was looked at.
-- Index: the primary key.
delete from forget_later
where at = ?1 and event_seq = ?2
