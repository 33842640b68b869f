-- Keys that count no longer and are about to be used again.
-- Index: the primary key.
delete from tidegate.idempotency_keys
where (account_no, endpoint, key) in (select * from unnest($1::bigint[], $2::text[], $3::text[]))
