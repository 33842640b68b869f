-- A row of the hold log.
-- Index: none is looked at; it goes to the end of its tables.
insert into holds (destination_no, reason, since, until)
values (?1, ?2, ?3, ?4)
