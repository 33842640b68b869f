-- A new account.
-- Index: the unique ones.
insert into tidegate.accounts (id, external_id, document, settings, version, created_at)
values ($1, $2, $3, $4, $5, $6)
returning no
