-- Deliveries that are about to go are taken out of the lists of their destinations.
-- Index: the primary keys.
delete from deliveries_filed
where (destination_no, seq) in (select destination_no, seq from deliveries where seq between ?1 and ?2)
