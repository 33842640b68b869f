-- The oldest rows of the destinations' log.
-- Index: the primary key.
delete from tidegate.notices
where no in (select no from tidegate.notices order by no limit $2) and at < $1
