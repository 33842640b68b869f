-- All keys, at start.
-- Index: the primary key.
select id, account_no, hash, document, created_at, expires_at
from tidegate.api_keys
order by id
