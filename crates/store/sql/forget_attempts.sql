-- Their attempts with them.
-- Index: the primary key.
delete from attempts
where delivery_seq between ?1 and ?2
