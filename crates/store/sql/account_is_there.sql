-- Whether an account is there.
-- Index: the primary key.
select 1
from accounts
where no = ?1
