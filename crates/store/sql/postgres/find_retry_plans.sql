-- The numbers of plans.
-- Index: retry_plans_by_plan.
select no, plan
from tidegate.retry_plans
where plan = any($1::text[])
