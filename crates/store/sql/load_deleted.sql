-- Destinations that are deleted, at start, and whether open deliveries of theirs are left.
-- Index: the primary keys.
select d.no, d.id, d.account_no, coalesce(l.open, 0) > 0
from destinations d
left join lanes l on l.destination_no = d.no
where d.deleted = 1
order by d.no
