-- Rows of the hold log.
-- Index: none is looked at.
insert into tidegate.holds (
  destination_no, reason, since, until
)
select *
from unnest(
  $1::bigint[], $2::text[], $3::bigint[], $4::bigint[]
)
