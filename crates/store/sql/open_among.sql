-- Which of some deliveries are open; their numbers are a list with commas.
-- Index: the primary key.
select d.seq
from json_each('[' || ?1 || ']') as keys
cross join deliveries d on d.seq = keys.value
where d.stage = 0
