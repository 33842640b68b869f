-- The oldest rows of the hold log.
-- Index: the primary key.
delete from holds
where no in (select no from holds order by no limit ?2) and until < ?1
