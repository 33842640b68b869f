-- What was kept of their answers.
-- Index: attempts_by_delivery.
delete from answers
where attempt_seq in (select seq from attempts where delivery_seq between ?1 and ?2 and answered = 1)
