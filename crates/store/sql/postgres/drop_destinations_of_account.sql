-- Its destinations with it: only their numbers and ids stay.
-- Index: destinations_of_account.
update tidegate.destinations
set deleted = true, external_id = null, document = '', secrets = ''
where account_no = $1 and not deleted
