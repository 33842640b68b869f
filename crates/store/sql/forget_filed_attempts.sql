-- Attempts that are about to go are taken out of the lists of their destinations.
-- Index: attempts_by_delivery.
delete from attempts_filed
where (destination_no, seq) in (select destination_no, seq from attempts where delivery_seq between ?1 and ?2)
