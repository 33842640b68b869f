-- Plans that many rows share.
-- Index: the primary key.
select no, plan
from retry_plans
where no > ?1
order by no
