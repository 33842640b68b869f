-- The first answer under this key, or the first after the old one ran out.
-- Index: the primary key.
insert or replace into idempotency_keys (account_no, endpoint, key, body_hash, answer, at)
values (?1, ?2, ?3, ?4, ?5, ?6)
