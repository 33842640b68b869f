-- Another version of it, if nobody changed it meanwhile.
-- Index: the primary key.
update tidegate.event_types
set document = $3, version = $4, updated_at = $5
where account_no = $1 and event_type = $2 and version = $4 - 1
