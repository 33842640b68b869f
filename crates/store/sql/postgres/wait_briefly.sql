-- How long a transaction waits for a lock: others may wait behind it.
-- Index: none is looked at.
set local lock_timeout = '1s'
