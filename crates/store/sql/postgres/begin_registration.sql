-- A node registers. One at a time: the lock ("Tide" in ASCII, and what for) ends with the transaction.
-- Index: none is looked at.
select set_config('lock_timeout', '10s', true), pg_advisory_xact_lock(1416193125, 3)
