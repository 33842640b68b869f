-- Events of the outbox that were refused, the newest first.
-- Index: outbox_refused.
select o.no, o.event_seq, o.event_salt, o.event_type, o.payload, o.options::text,
  (extract(epoch from o.created_at) * 1000)::bigint, o.error, (extract(epoch from o.refused_at) * 1000)::bigint
from tidegate.outbox o
where o.error is not null
order by o.refused_at desc, o.no desc
limit $1
