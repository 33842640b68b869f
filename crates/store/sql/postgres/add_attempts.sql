-- Requests that were made. One that is there already stays as it is.
-- Index: the primary key.
insert into tidegate.attempts (
  delivery_seq, delivery_salt, number, seq, salt, destination_no, started_at, response_time, timeout, outcome, probe,
  error, headers, body
)
select *
from unnest(
  $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
  $9::bigint[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bytea[]
)
on conflict do nothing
