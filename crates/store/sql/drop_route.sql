-- A route is gone.
-- Index: the primary key.
delete from routes
where id = ?1
