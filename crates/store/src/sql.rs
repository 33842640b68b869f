//! The statements that look, in both dialects: one file each under `sql/` (SQLite) and `sql/postgres/`.

use crate::source::Sql;

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: Sql = Sql {
            sqlite: include_str!(concat!("../sql/", $file, ".sql")),
            postgres: include_str!(concat!("../sql/postgres/", $file, ".sql")),
        };)*
        /// Every statement with the name of its file, for the tests of their plans.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, Sql)] = &[$(($file, $name),)*];
    };
}

statements! {
    ATTEMPTS_FILED = "attempts_filed";
    ATTEMPTS_OF_DELIVERY = "attempts_of_delivery";
    AUDIT_LOG = "audit_log";
    COUNT_LINE_BEFORE = "count_line_before";
    COUNT_READY_BEFORE = "count_ready_before";
    DELIVERIES_OF = "deliveries_of";
    DELIVERIES_OF_EVENT = "deliveries_of_event";
    DELIVERY = "delivery";
    EVENT = "event";
    EVENTS_BY_EXTERNAL_ID = "events_by_external_id";
    EVENT_OF_DELIVERY = "event_of_delivery";
    FIND_TYPE_NAME = "find_type_name";
    GET_META = "get_meta";
    HOLDS = "holds";
    HOURS = "hours";
    IS_DUE = "is_due";
    JOB = "job";
    JOBS_NEWEST_FIRST = "jobs_newest_first";
    JOBS_OLDEST_FIRST = "jobs_oldest_first";
    LIST_BY_ACCOUNT_NEWEST = "list_by_account_newest";
    LIST_BY_ACCOUNT_OLDEST = "list_by_account_oldest";
    LIST_EVENTS_NEWEST = "list_events_newest";
    LIST_EVENTS_OLDEST = "list_events_oldest";
    LIST_FILED_NEWEST = "list_filed_newest";
    LIST_FILED_OLDEST = "list_filed_oldest";
    LIST_TROUBLED_NEWEST = "list_troubled_newest";
    LIST_TROUBLED_OF_DESTINATION_NEWEST = "list_troubled_of_destination_newest";
    LIST_TROUBLED_OF_DESTINATION_OLDEST = "list_troubled_of_destination_oldest";
    LIST_TROUBLED_OLDEST = "list_troubled_oldest";
    LIST_UNFILED_NEWEST = "list_unfiled_newest";
    LIST_UNFILED_OLDEST = "list_unfiled_oldest";
    LOAD_ACCOUNTS = "load_accounts";
    LOAD_ACCOUNT_TALLIES = "load_account_tallies";
    LOAD_DELETED = "load_deleted";
    LOAD_DESTINATIONS = "load_destinations";
    LOAD_EVENT_TYPES = "load_event_types";
    LOAD_KEYS = "load_keys";
    LOAD_LANES = "load_lanes";
    LOAD_ROUTES = "load_routes";
    NOTICES = "notices";
    OLDEST_RETRYING = "oldest_retrying";
    OPEN_READY = "open_ready";
    OPEN_WAITING = "open_waiting";
    OVERDUE = "overdue";
    REFILL_FIRST_KEY = "refill_first_key";
    REFILL_HEADS = "refill_heads";
    REFILL_KINDS = "refill_kinds";
    REFILL_LAST_RETRY = "refill_last_retry";
    REFILL_LINE = "refill_line";
    REFILL_NEXT_KEY = "refill_next_key";
    REFILL_READY = "refill_ready";
    REFILL_TIMED = "refill_timed";
    REFILL_TRIED = "refill_tried";
    REPLAYS_OF = "replays_of";
    RETRY_PLAN = "retry_plan";
    RUNNING_HOUR_OF_ACCOUNT = "running_hour_of_account";
    RUNNING_HOUR_OF_DESTINATION = "running_hour_of_destination";
    RUNNING_JOBS = "running_jobs";
    TYPE_NAME = "type_name";
}
