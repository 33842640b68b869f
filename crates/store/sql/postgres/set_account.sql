-- Another version of an account, if nobody changed it meanwhile.
-- Index: the primary key.
update tidegate.accounts
set external_id = $2, document = $3, settings = $4, version = $5
where no = $1 and version = $5 - 1
