-- Keys.
-- Index: the primary key.
select id, account_no, hash, document, created_at, expires_at
from api_keys
where id > ?1
order by id
