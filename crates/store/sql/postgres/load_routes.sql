-- All routes, at start.
-- Index: the primary key.
select id, account_no, destination_no, document, created_at
from tidegate.routes
order by id
