-- One that comes late: those around it are filed already.
-- Index: none is looked at.
insert into deliveries_filed (destination_no, seq) values (?1, ?2)
on conflict do nothing
