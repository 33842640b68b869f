-- A node leaves: whatever it still has.
-- Index: the primary key.
update tidegate.slots
set owner = null, clean = $2 <> 0
where owner = $1
