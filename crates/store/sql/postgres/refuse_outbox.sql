-- An event of the outbox that the rules refuse is kept, with the reason.
-- Index: the primary key.
update tidegate.outbox
set error = $2, refused_at = clock_timestamp()
where no = $1 and error is null
