-- Single numbers, and the last one that each table gave to its rows.
-- Index: the primary keys.
select name, value - (name = 'forget_cursor')::int from tidegate.meta where name = 'forget_cursor'
union all select 'clean_stop', bool_and(clean)::int::bigint from tidegate.slots
union all select 'sequence', max(sequence) from tidegate.seats
union all select 'accounts', last_value - (not is_called)::int from tidegate.accounts_no_seq
union all select 'audit_log', last_value - (not is_called)::int from tidegate.audit_log_seq_seq
union all select 'destinations', last_value - (not is_called)::int from tidegate.destinations_no_seq
union all select 'holds', last_value - (not is_called)::int from tidegate.holds_no_seq
union all select 'notices', last_value - (not is_called)::int from tidegate.notices_no_seq
union all select 'jobs', last_value - (not is_called)::int from tidegate.jobs_no_seq
union all select 'retry_plans', last_value - (not is_called)::int from tidegate.retry_plans_no_seq
union all select 'type_names', last_value - (not is_called)::int from tidegate.type_names_no_seq
