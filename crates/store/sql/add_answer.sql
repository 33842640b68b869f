-- What is kept of an answer.
-- Index: none is looked at; it goes to the end of its tables.
insert into answers (attempt_seq, error, headers, body)
values (?1, ?2, ?3, ?4)
on conflict do nothing
