-- New deliveries that are final already: expired on arrival.
-- Index: none is looked at.
insert into tidegate.deliveries (
  seq, salt, event_seq, event_salt, account_no, destination_no, type_no, plan_no, priority, occurred_at, accepted_at,
  expires_at, too_old_at, ordering_key, bytes, replay_of, attempts_made, attempts_used, deliver_at, external_id,
  stage, end_code, finished_at
)
select *
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[], $16::bytea[],
  $17::bigint[], $18::bigint[], $19::bigint[], $20::text[], $21::bigint[], $22::text[], $23::bigint[]
)
