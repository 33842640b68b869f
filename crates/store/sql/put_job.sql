-- A job, new or with its progress. One that has ended stays so, whoever still works at it.
-- Index: the primary key.
insert into jobs (
  id, account_no, kind, request, created_at, state, position, total, done, skipped, finished_at, no
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (select coalesce(max(no), 0) + 1 from jobs))
on conflict (id) do update
set state = excluded.state, position = excluded.position, total = excluded.total, done = excluded.done,
  skipped = excluded.skipped, finished_at = excluded.finished_at
where jobs.state = 0
