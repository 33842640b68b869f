-- Idempotency keys, with what was answered.
-- Index: the primary key.
select account_no, endpoint, key, at, body_hash, answer
from idempotency_keys
where (account_no, endpoint, key) > (?1, ?2, ?3)
order by account_no, endpoint, key
