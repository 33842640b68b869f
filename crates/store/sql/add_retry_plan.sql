-- A plan that no delivery had before.
-- Index: the unique one.
insert into retry_plans (plan)
values (?1)
