-- The oldest rows of the hold log.
-- Index: the primary key.
delete from tidegate.holds
where no in (select no from tidegate.holds order by no limit $2) and until < $1
