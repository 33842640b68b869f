-- A new route.
-- Index: the primary key.
insert into tidegate.routes (id, account_no, destination_no, document, created_at)
values ($1, $2, $3, $4, $5)
