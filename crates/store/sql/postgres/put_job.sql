-- A job, new or with its progress. One that has ended stays so, whoever still works at it.
-- Index: the primary key.
insert into tidegate.jobs as j (
  id, account_no, kind, request, created_at, state, position, total, done, skipped, finished_at, node_no
) values ($1, $2, $3, $4, $5, $6, $7::bigint, $8::bigint, $9, $10, $11::bigint, $12)
on conflict (id) do update
set state = excluded.state, position = excluded.position, total = excluded.total, done = excluded.done,
  skipped = excluded.skipped, finished_at = excluded.finished_at
where j.state = 0
