-- Which of some deliveries are open; their numbers are a list with commas.
-- Index: the primary key.
select seq
from tidegate.open_deliveries
where seq = any (string_to_array($1, ',')::bigint[])
