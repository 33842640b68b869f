-- The external ids of new events. One that another node has taken meanwhile is a conflict: then the group starts anew and
-- finds that.
-- Index: the primary key.
insert into tidegate.external_ids (account_no, type_no, external_id, event_seq, event_salt, payload_hash, at)
select *
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[])
