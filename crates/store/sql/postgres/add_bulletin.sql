-- What a group has for other nodes.
-- Index: none is looked at.
insert into tidegate.bulletins (seat, groups, bytes, catalogue, deliveries, destinations, orders)
values ($1, $2, $3, $4 <> 0, $5::bigint[], $6::bigint[]::integer[], $7::bigint[])
