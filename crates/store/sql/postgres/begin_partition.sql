-- A partition is made. One node at a time: the lock ("Tide" in ASCII, and what for) ends with the transaction.
-- Whoever reads for long must not make the writer wait, and everybody behind it.
-- Index: none is looked at.
begin;
set local lock_timeout = '500ms';
select pg_advisory_xact_lock(1416193125, 2)
