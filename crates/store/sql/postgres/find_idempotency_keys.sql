-- What was answered under these keys.
-- Index: the primary key.
select k.account_no, k.endpoint, k.key, k.body_hash, k.answer, k.at
from unnest($1::bigint[], $2::text[], $3::text[]) as w (account_no, endpoint, key)
join tidegate.idempotency_keys k on k.account_no = w.account_no and k.endpoint = w.endpoint and k.key = w.key
