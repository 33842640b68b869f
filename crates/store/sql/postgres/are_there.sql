-- Which of these deliveries are final.
-- Index: the primary key.
select seq
from tidegate.deliveries
where seq = any($1::bigint[])
