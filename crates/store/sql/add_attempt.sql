-- One request that was made.
-- Index: none is looked at; it goes to the end of its tables.
insert into attempts (
  delivery_seq, number, seq, salt, destination_no, started_at, response_time, timeout, outcome, probe, answered
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
on conflict do nothing
