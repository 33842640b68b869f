-- A node gives slots back; clean: with nothing in flight.
-- Index: the primary key.
update tidegate.slots
set owner = null, clean = $3 <> 0
where slot = any($2::bigint[]) and owner = $1
