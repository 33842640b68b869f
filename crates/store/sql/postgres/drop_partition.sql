-- The partition of the numbers from {first} up to {next} goes; what must stay goes to the default partition. A delivery stays with
-- its event, which for a replay (and for the first numbers) may lie in an older partition; an attempt with its delivery.
-- Index: the primary keys, deliveries_replays.
alter table tidegate.events detach partition tidegate.events_{first};
alter table tidegate.deliveries detach partition tidegate.deliveries_{first};
alter table tidegate.attempts detach partition tidegate.attempts_{first};
insert into tidegate.events
select *
from tidegate.events_{first}
where seq in (select event_seq from tidegate.forget_kept);
insert into tidegate.deliveries
select d.*
from tidegate.forget_kept k
join tidegate.events_{first} e on e.seq = k.event_seq
join tidegate.deliveries_{first} d on d.seq between e.first_delivery and e.first_delivery + e.routed - 1;
insert into tidegate.deliveries
select d.*
from tidegate.deliveries_{first} d
where d.replay_of is not null and exists (select from tidegate.events e where e.seq = d.event_seq);
insert into tidegate.deliveries
select d.*
from tidegate.deliveries_{first} d
where d.seq < {first} + 1048576 and d.event_seq < {first} and d.replay_of is null
  and exists (select from tidegate.events e where e.seq = d.event_seq);
insert into tidegate.attempts
select a.*
from tidegate.attempts_{first} a
where a.delivery_seq in (
  select seq from tidegate.open_deliveries where seq >= {first} and seq < {next}
  union all
  select seq from tidegate.deliveries_kept where seq >= {first} and seq < {next}
);
delete from tidegate.forget_kept;
drop table tidegate.events_{first}, tidegate.deliveries_{first}, tidegate.attempts_{first};
