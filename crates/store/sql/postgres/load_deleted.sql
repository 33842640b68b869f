-- Destinations that are deleted, at start, and whether open deliveries of theirs are left.
-- Index: the primary keys.
select d.no, d.id, d.account_no, coalesce(l.open, 0) > 0
from tidegate.destinations d
left join tidegate.lane_counts l on l.destination_no = d.no
where d.deleted
order by d.no
