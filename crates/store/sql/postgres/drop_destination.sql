-- A destination is deleted: only its number and its id stay.
-- Index: the primary key.
update tidegate.destinations
set deleted = true, external_id = null, document = '', secrets = ''
where no = $1 and not deleted
