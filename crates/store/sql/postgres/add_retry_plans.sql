-- Plans that no delivery had before.
-- Index: the unique one.
insert into tidegate.retry_plans (plan)
select unnest($1::text[])
on conflict do nothing
