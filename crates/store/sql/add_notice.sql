-- Something about a destination that people want to know.
-- Index: none is looked at; it goes to the end of its tables.
insert into notices (destination_no, at, kind, detail)
values (?1, ?2, ?3, ?4)
