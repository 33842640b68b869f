-- Single numbers, and the last one that each table gave to its rows.
-- Index: the primary keys.
select name, value from meta where name in ('clean_stop', 'forget_cursor', 'sequence')
union all select 'accounts', coalesce(max(seq), 0) from sqlite_sequence where name = 'accounts'
union all select 'audit_log', coalesce(max(seq), 0) from sqlite_sequence where name = 'audit_log'
union all select 'destinations', coalesce(max(seq), 0) from sqlite_sequence where name = 'destinations'
union all select 'holds', coalesce(max(seq), 0) from sqlite_sequence where name = 'holds'
union all select 'notices', coalesce(max(seq), 0) from sqlite_sequence where name = 'notices'
union all select 'jobs', coalesce(max(no), 0) from jobs
union all select 'retry_plans', coalesce(max(no), 0) from retry_plans
union all select 'type_names', coalesce(max(no), 0) from type_names
