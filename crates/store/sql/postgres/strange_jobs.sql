-- Which of these jobs this node does not work at any more: another has taken them over, or they have ended. The others stay
-- this node's until the commit.
-- Index: the primary key.
with asked as (
  select id, node_no, state
  from tidegate.jobs
  where id = any($2::bytea[])
  order by id
  for update
)
select id
from asked
where node_no <> $1 or state <> 0
