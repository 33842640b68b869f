-- The owner gives its slots up, with nothing in flight.
-- Index: the primary key.
update tidegate.slots
set owner = null, clean = true
where owner = $1
