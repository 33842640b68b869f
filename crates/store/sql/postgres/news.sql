-- Bulletins of other nodes, from where each was read up to.
-- Index: bulletins_pkey.
select b.seat, b.groups, b.bytes, b.deliveries, b.destinations, b.orders, b.catalogue
from unnest($1::bigint[], $2::bigint[]) as c (seat, groups)
cross join lateral (
  select b.*
  from tidegate.bulletins b
  where b.seat = c.seat and b.groups > c.groups
  order by b.groups
  limit $3
) b
order by b.seat, b.groups
limit $3
