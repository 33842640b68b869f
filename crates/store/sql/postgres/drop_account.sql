-- An account is gone.
-- Index: the primary key.
delete from tidegate.accounts
where no = $1
