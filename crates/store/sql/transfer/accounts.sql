-- Accounts.
-- Index: the primary key.
select no, id, external_id, document, settings, version, created_at
from accounts
where no > ?1
order by no
