-- How many events of the outbox were refused, counted up to a limit.
-- Index: outbox_refused.
select count(*)
from (select from tidegate.outbox where error is not null order by refused_at, no limit $1) refused
