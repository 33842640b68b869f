-- All accounts, at start.
-- Index: the primary key.
select no, id, external_id, document, settings, version, created_at
from tidegate.accounts
order by no
