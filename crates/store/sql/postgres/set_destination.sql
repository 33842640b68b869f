-- Another version of a destination, if nobody changed it meanwhile.
-- Index: the primary key.
update tidegate.destinations
set external_id = $2, document = $3, secrets = $4, version = $5, updated_at = $6
where no = $1 and version = $5 - 1 and not deleted
