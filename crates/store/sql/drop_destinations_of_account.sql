-- Its destinations with it: only their numbers and ids stay.
-- Index: destinations_of_account.
update destinations
set deleted = 1, external_id = null, document = '', secrets = x''
where account_no = ?1 and deleted = 0
