-- A retry plan.
-- Index: the primary key.
select plan
from retry_plans
where no = ?1
