-- The number of a retry plan.
-- Index: the unique one.
select no
from retry_plans
where plan = ?1
