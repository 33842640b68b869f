-- What was answered under this key.
-- Index: the primary key.
select body_hash, answer, at
from idempotency_keys
where account_no = ?1 and endpoint = ?2 and key = ?3
