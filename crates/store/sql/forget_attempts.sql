-- Their attempts with them.
-- Index: attempts_by_delivery.
delete from attempts
where delivery_seq between ?1 and ?2
