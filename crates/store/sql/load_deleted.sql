-- Deleted destinations with open deliveries, at start.
-- Index: the primary keys.
select d.no
from destinations d
join lanes l on l.destination_no = d.no
where d.deleted = 1 and l.open > 0
order by d.no
