-- The oldest rows of the destinations' log.
-- Index: the primary key.
delete from notices
where no in (select no from notices order by no limit ?2) and at < ?1
