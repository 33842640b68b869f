-- How many attempts for a destination are filed, counted so far.
-- Index: the primary keys.
select count(*)
from (select 1 from attempts_filed where destination_no = ?1 limit ?2)
