-- Bulletins of other nodes, from where each was read up to.
-- Index: the primary key.
select b.seat, b.groups, b.bytes, b.deliveries, b.destinations, b.orders, b.catalogue
from unnest($1::bigint[], $2::bigint[]) as c (seat, groups)
join tidegate.bulletins b on b.seat = c.seat and b.groups > c.groups
order by b.seat, b.groups
limit $3
