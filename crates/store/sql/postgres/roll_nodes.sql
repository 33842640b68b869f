-- All nodes, with what is left of their leases in milliseconds.
-- Index: the primary key.
select n.no, n.seat, n.name, n.address, n.version, (extract(epoch from n.started_at) * 1000)::bigint,
  floor(extract(epoch from n.lease_until - t.now) * 1000)::bigint, n.leaving
from (select clock_timestamp() as now) t
cross join tidegate.nodes n
order by n.no
