-- Things about destinations that people want to know.
-- Index: none is looked at.
insert into tidegate.notices (
  destination_no, at, kind, detail
)
select *
from unnest(
  $1::bigint[], $2::bigint[], $3::text[], $4::text[]
)
