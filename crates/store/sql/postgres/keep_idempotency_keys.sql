-- The first answers under these keys. One that another node has taken meanwhile is a conflict: then the group starts anew and
-- finds that.
-- Index: the primary key.
insert into tidegate.idempotency_keys (account_no, endpoint, key, body_hash, answer, at)
select *
from unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[])
