-- Its deliveries with it.
-- Index: the primary key.
delete from deliveries
where seq between ?1 and ?2
