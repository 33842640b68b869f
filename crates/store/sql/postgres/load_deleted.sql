-- Destinations that are deleted, at start, and whether open deliveries of theirs are left.
-- Index: the primary keys.
select d.no, d.id, d.account_no,
  coalesce((select sum(c.open) from tidegate.lane_counts c where c.destination_no = d.no), 0) > 0
from tidegate.destinations d
where d.deleted
order by d.no
