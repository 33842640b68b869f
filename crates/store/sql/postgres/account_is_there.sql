-- Whether an account is there.
-- Index: the primary key.
select 1
from tidegate.accounts
where no = $1
