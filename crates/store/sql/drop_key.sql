-- A key is revoked.
-- Index: the primary key.
delete from api_keys
where id = ?1
