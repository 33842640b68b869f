-- Routes.
-- Index: the primary key.
select id, account_no, destination_no, document, created_at
from routes
where id > ?1
order by id
