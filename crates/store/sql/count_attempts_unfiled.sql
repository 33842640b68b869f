-- How many attempts for a destination are not filed yet, counted so far: few are, and all of these are looked at.
-- Index: the primary keys.
select count(*)
from (
  select 1 from attempts
  where seq > (select value from meta where name = 'filed') and destination_no = ?1
  limit ?2
)
