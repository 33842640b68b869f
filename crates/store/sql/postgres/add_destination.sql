-- A new destination.
-- Index: the unique ones.
insert into tidegate.destinations (id, account_no, external_id, document, secrets, version, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning no
