-- An account is gone.
-- Index: the primary key.
delete from accounts
where no = ?1
