-- A destination is deleted: only its number and its id stay.
-- Index: the primary key.
update destinations
set deleted = 1, external_id = null, document = '', secrets = x''
where no = ?1 and deleted = 0
