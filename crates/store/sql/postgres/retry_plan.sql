-- A retry plan.
-- Index: the primary key.
select plan
from tidegate.retry_plans
where no = $1
