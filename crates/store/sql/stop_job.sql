-- A job that runs goes no further. How far it came stays as its worker has written it.
-- Index: the primary key.
update jobs
set state = 2, finished_at = ?2
where id = ?1 and state = 0
