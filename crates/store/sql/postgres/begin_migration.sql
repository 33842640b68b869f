-- A migration begins. One node at a time: the lock ("Tide" in ASCII, and what for) ends with the transaction.
-- Index: none is looked at.
begin;
select pg_advisory_xact_lock(1416193125, 1)
