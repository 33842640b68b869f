-- Running jobs at which nobody works any more go to this node. Its own are named again: an answer may have been lost.
-- Index: jobs_running.
update tidegate.jobs j
set node_no = $1
where j.state = 0 and (
  j.node_no = $1
  or not exists (select from tidegate.nodes n where n.no = j.node_no and n.lease_until > clock_timestamp())
)
returning j.id, j.account_no, j.kind, j.request, j.created_at, j.state, j.position, j.total, j.done, j.skipped,
  j.finished_at, j.no
