//! The statements that both engines run one by one, in both dialects: one file each under `sql/` (SQLite) and `sql/postgres/`.

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
    ACCOUNT_IS_THERE = "account_is_there";
    ADD_ACCOUNT = "add_account";
    ADD_AUDIT_ENTRY = "add_audit_entry";
    ADD_DESTINATION = "add_destination";
    ADD_EVENT_TYPE = "add_event_type";
    ADD_KEY = "add_key";
    ADD_ROUTE = "add_route";
    ANSWERED = "answered";
    ATTEMPTS_BETWEEN = "attempts_between";
    ATTEMPTS_FILED = "attempts_filed";
    ATTEMPTS_OF_DELIVERY = "attempts_of_delivery";
    AUDIT_LOG = "audit_log";
    COUNT_ATTEMPTS_FILED = "count_attempts_filed";
    COUNT_AUDIT_LOG = "count_audit_log";
    COUNT_DUE_BEFORE = "count_due_before";
    COUNT_EVENTS = "count_events";
    COUNT_JOBS = "count_jobs";
    COUNT_LINE_BEFORE = "count_line_before";
    COUNT_READY_BEFORE = "count_ready_before";
    COUNT_RETRYING = "count_retrying";
    COUNT_TIMED = "count_timed";
    COUNT_WAITING_IN_LINE = "count_waiting_in_line";
    DELIVERIES_OF = "deliveries_of";
    DELIVERIES_OF_EVENT = "deliveries_of_event";
    DELIVERY = "delivery";
    DESTINATION_IS_THERE = "destination_is_there";
    DROP_ACCOUNT = "drop_account";
    DROP_DESTINATION = "drop_destination";
    DROP_DESTINATIONS_OF_ACCOUNT = "drop_destinations_of_account";
    DROP_EVENT_TYPE = "drop_event_type";
    DROP_EVENT_TYPES_OF_ACCOUNT = "drop_event_types_of_account";
    DROP_KEY = "drop_key";
    DROP_KEYS_OF_ACCOUNT = "drop_keys_of_account";
    DROP_ROUTE = "drop_route";
    DROP_ROUTES_OF_ACCOUNT = "drop_routes_of_account";
    DROP_ROUTES_OF_DESTINATION = "drop_routes_of_destination";
    EVENT = "event";
    EVENTS_BY_EXTERNAL_ID = "events_by_external_id";
    EVENT_OF_DELIVERY = "event_of_delivery";
    EVENT_TYPE_IS_THERE = "event_type_is_there";
    FIND_TYPE_NAME = "find_type_name";
    GET_META = "get_meta";
    HOLDS = "holds";
    HOURS = "hours";
    IS_DUE = "is_due";
    JOB = "job";
    JOBS_NEWEST_FIRST = "jobs_newest_first";
    JOBS_OLDEST_FIRST = "jobs_oldest_first";
    LANE = "lane";
    LAST_DUE = "last_due";
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
    LOAD_DELETED = "load_deleted";
    LOAD_DESTINATIONS = "load_destinations";
    LOAD_EVENT_TYPES = "load_event_types";
    LOAD_KEYS = "load_keys";
    LOAD_ROUTES = "load_routes";
    NEWEST_REPLAYS = "newest_replays";
    NOTICES = "notices";
    OLDEST_RETRYING = "oldest_retrying";
    OPEN_AMONG = "open_among";
    OPEN_READY = "open_ready";
    OPEN_WAITING = "open_waiting";
    OVERDUE = "overdue";
    OVERDUE_NUMBERS = "overdue_numbers";
    PUT_JOB = "put_job";
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
    SET_ACCOUNT = "set_account";
    SET_DESTINATION = "set_destination";
    SET_EVENT_TYPE = "set_event_type";
    STOP_JOB = "stop_job";
    TYPE_NAME = "type_name";
}
