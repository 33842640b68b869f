-- Slots change hands. One at a time: the lock ("Tide" in ASCII, and what for) ends with the transaction. Nobody is waited for
-- so long that the own lease would end.
-- Index: none is looked at.
select set_config('lock_timeout', '1s', true), pg_advisory_xact_lock(1416193125, 4)
