-- A route is gone.
-- Index: the primary key.
delete from tidegate.routes
where id = $1
