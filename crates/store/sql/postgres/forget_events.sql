-- Of these events, those of which nothing is open or young go, with their deliveries and attempts; those of which something
-- is young, but nothing open, are noted. They lie in the default partitions, or are looked for in all that can have them.
-- Index: the primary keys.
with asked as (
  select e.seq, e.first_delivery, e.routed
  from tidegate.events e
  where e.seq = any($1::bigint[])
),
theirs as (
  select s.seq as event_seq, d.seq, d.finished_at
  from asked s
  join tidegate.deliveries d on d.seq between s.first_delivery and s.first_delivery + s.routed - 1
  union
  select s.seq, d.seq, d.finished_at
  from asked s
  join tidegate.deliveries d on d.event_seq = s.seq and d.replay_of is not null
),
closed as (
  select s.seq, (select max(t.finished_at) from theirs t where t.event_seq = s.seq) as finished_at
  from asked s
  where not exists (select from tidegate.open_deliveries o where o.event_seq = s.seq)
),
noted as (
  insert into tidegate.forget_later (at, event_seq)
  select finished_at, seq
  from closed
  where finished_at >= $2
  on conflict do nothing
),
old as (
  select seq
  from closed
  where finished_at is null or finished_at < $2
),
attempts_gone as (
  delete from tidegate.attempts a
  using theirs t
  join old on old.seq = t.event_seq
  where a.delivery_seq = t.seq
),
deliveries_gone as (
  delete from tidegate.deliveries d
  using theirs t
  join old on old.seq = t.event_seq
  where d.seq = t.seq
),
events_gone as (
  delete from tidegate.events e
  using old
  where e.seq = old.seq
  returning e.seq
)
select count(*)
from events_gone
