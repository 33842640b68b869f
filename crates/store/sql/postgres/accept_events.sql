-- New events.
-- Index: none is looked at.
insert into tidegate.events (
  seq, salt, account_no, type_no, accepted_at, occurred_at, expires_at, deliver_at, priority, ordering_key,
  external_id, first_delivery, routed, body_kind, content_type, payload
)
select *
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::bytea[]
)
