-- How the source was left: whoever claims a slot first is told.
-- Index: none: all of them.
update tidegate.slots
set clean = $1 <> 0
