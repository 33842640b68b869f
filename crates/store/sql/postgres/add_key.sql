-- A new key.
-- Index: the primary key.
insert into tidegate.api_keys (id, account_no, hash, document, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6)
