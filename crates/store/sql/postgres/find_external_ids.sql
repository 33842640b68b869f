-- The events that have these external ids, and how many destinations they went to.
-- Index: the primary keys.
select k.account_no, k.type_no, k.external_id, k.event_seq, k.event_salt, k.payload_hash, k.at,
  (select e.routed from tidegate.events e where e.seq = k.event_seq)
from unnest($1::bigint[], $2::bigint[], $3::text[]) as w (account_no, type_no, external_id)
join tidegate.external_ids k
  on k.account_no = w.account_no and k.type_no = w.type_no and k.external_id = w.external_id
