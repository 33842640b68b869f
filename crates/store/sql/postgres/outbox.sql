-- Events to be accepted, by one node at a time, so that they keep their order: the first of those that live. What lies there for a
-- while is anybody's.
-- Index: outbox_waiting.
select o.no, o.event_seq, o.event_salt, o.event_type, o.payload, o.options::text,
  (extract(epoch from o.created_at) * 1000)::bigint
from tidegate.outbox o
where o.error is null
  and (
    $1 = (select min(no) from tidegate.nodes where lease_until > clock_timestamp())
    or o.created_at < clock_timestamp() - interval '5 seconds'
  )
order by o.no
limit $2
