-- The partition of the numbers from {first} up to {next} is one no more, and what must stay goes to the default partition: events
-- of which something is open, or became final from {cut} on, with all that is theirs. Those of which nothing is open are looked
-- at again when that is old. A delivery stays with its event, which for a replay (and for the first numbers) may lie in an older
-- partition; an attempt with its delivery.
--
-- First of all every node's group in progress ends, and none begins until the commit: so nobody who writes holds some of the
-- tables while we wait for the others. Whoever reads for long makes us give up soon, as everybody waits behind us.
-- Index: open_deliveries_of_event, deliveries_by_end, deliveries_replays, the primary keys.
begin;
set local lock_timeout = '1s';
select pg_advisory_xact_lock(1416193125, 2);
select seat from tidegate.seats order by seat for update;
set local lock_timeout = '50ms';
lock table only tidegate.events, only tidegate.deliveries, only tidegate.attempts in access exclusive mode;
set local enable_hashjoin = off;
set local enable_mergejoin = off;
with found as materialized (
  select event_seq, max(finished_at) as finished_at, bool_or(is_open) as is_open
  from (
    select event_seq, null::bigint as finished_at, true as is_open
    from tidegate.open_deliveries
    where event_seq >= {first} and event_seq < {next}
    union all
    select event_seq, finished_at, false
    from tidegate.deliveries_{first}
    where finished_at >= {cut} and event_seq >= {first}
    union all
    select event_seq, finished_at, false
    from tidegate.deliveries
    where event_seq >= {first} and event_seq < {next} and replay_of is not null and seq >= {next} and finished_at >= {cut}
    union all
    select event_seq, finished_at, false
    from tidegate.deliveries
    where seq >= {next} and seq < {next} + 1048576 and event_seq >= {first} and event_seq < {next} and finished_at >= {cut}
  ) as theirs
  group by event_seq
),
noted as (
  insert into tidegate.forget_later (at, event_seq)
  select finished_at, event_seq
  from found
  where not is_open
  on conflict do nothing
)
insert into tidegate.forget_kept (event_seq)
select event_seq
from found;
alter table tidegate.events detach partition tidegate.events_{first};
alter table tidegate.deliveries detach partition tidegate.deliveries_{first};
alter table tidegate.attempts detach partition tidegate.attempts_{first};
insert into tidegate.events
select e.*
from tidegate.forget_kept k
join tidegate.events_{first} e on e.seq = k.event_seq;
insert into tidegate.deliveries
select d.*
from tidegate.forget_kept k
join tidegate.events_{first} e on e.seq = k.event_seq
join tidegate.deliveries_{first} d on d.seq between e.first_delivery and e.first_delivery + e.routed - 1;
insert into tidegate.deliveries
select d.*
from tidegate.forget_kept k
join tidegate.deliveries_{first} d on d.event_seq = k.event_seq and d.replay_of is not null;
insert into tidegate.deliveries
select d.*
from tidegate.deliveries_{first} d
where d.replay_of is not null and d.event_seq < {first}
  and exists (select from tidegate.events e where e.seq = d.event_seq);
insert into tidegate.deliveries
select d.*
from tidegate.deliveries_{first} d
where d.seq < {first} + 1048576 and d.event_seq < {first} and d.replay_of is null
  and exists (select from tidegate.events e where e.seq = d.event_seq);
insert into tidegate.attempts
select a.*
from (
  select seq from tidegate.open_deliveries where seq >= {first} and seq < {next}
  union all
  select seq from tidegate.deliveries_kept where seq >= {first} and seq < {next}
) as stays
join tidegate.attempts_{first} a on a.delivery_seq = stays.seq;
delete from tidegate.forget_kept;
update tidegate.meta set value = greatest(value, {next}) where name = 'forget_cursor';
commit
