-- Events whose deliveries are all old are gone.
-- Index: the primary key.
delete from events
where seq between ?1 and ?2
