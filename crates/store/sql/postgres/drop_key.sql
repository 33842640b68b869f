-- A key is revoked.
-- Index: the primary key.
delete from tidegate.api_keys
where id = $1
