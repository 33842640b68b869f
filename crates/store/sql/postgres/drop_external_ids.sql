-- External ids that count no longer and are about to be used again.
-- Index: the primary key.
delete from tidegate.external_ids
where (account_no, type_no, external_id) in (select * from unnest($1::bigint[], $2::bigint[], $3::text[]))
