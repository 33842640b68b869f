-- All destinations that are not deleted, at start.
-- Index: the primary key.
select no, id, account_no, external_id, document, secrets, version, created_at, updated_at
from tidegate.destinations
where not deleted
order by no
