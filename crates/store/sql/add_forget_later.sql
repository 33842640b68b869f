-- An event that retention has passed has become final: it is looked at again when that is old.
-- Index: the primary key.
insert into forget_later (at, event_seq)
values (?1, ?2)
on conflict do nothing
