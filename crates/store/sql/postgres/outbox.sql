-- Events to be accepted. Nodes share them by their numbers; what lies there for a while is anybody's.
-- Index: outbox_waiting.
with there as (
  select no, row_number() over (order by no) - 1 as place, count(*) over () as count
  from tidegate.nodes
  where lease_until > clock_timestamp()
)
select o.no, o.event_seq, o.event_salt, o.event_type, o.payload, o.options::text,
  (extract(epoch from o.created_at) * 1000)::bigint
from tidegate.outbox o
left join there t on t.no = $1
where o.error is null
  and (t.no is null or o.no % t.count = t.place or o.created_at < clock_timestamp() - interval '2 seconds')
order by o.no
limit $2
