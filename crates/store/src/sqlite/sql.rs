//! The statements of the writer, one file each under `sql/`.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../../sql/", $file, ".sql"));)*
        /// Every statement with the name of its file, for the tests of their plans.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str)] = &[$(($file, $name),)*];
    };
}

statements! {
    ACCEPT_DELIVERY = "accept_delivery";
    ACCEPT_EVENT = "accept_event";
    ACCOUNT_OF_DESTINATION = "account_of_destination";
    ADD_ANSWER = "add_answer";
    ADD_ATTEMPT = "add_attempt";
    ADD_FORGET_LATER = "add_forget_later";
    ADD_HOLD = "add_hold";
    ADD_HOUR = "add_hour";
    ADD_NOTICE = "add_notice";
    ADD_RETRY_PLAN = "add_retry_plan";
    ADD_TYPE_NAME = "add_type_name";
    ATTEMPTS_UNFILED = "attempts_unfiled";
    COUNT_ATTEMPTS_UNFILED = "count_attempts_unfiled";
    DELIVERIES_TO_FORGET = "deliveries_to_forget";
    EVENT_TO_FORGET = "event_to_forget";
    FILE_ATTEMPT = "file_attempt";
    FILE_ATTEMPTS = "file_attempts";
    FILE_DELIVERIES = "file_deliveries";
    FILE_DELIVERY = "file_delivery";
    FIND_EXTERNAL_ID = "find_external_id";
    FIND_OPEN = "find_open";
    FIND_REPLAYED_EVENT = "find_replayed_event";
    FIND_RETRY_PLAN = "find_retry_plan";
    FIND_TYPE_NAME = "find_type_name";
    FORGET_ANSWERS = "forget_answers";
    FORGET_ATTEMPTS = "forget_attempts";
    FORGET_DELIVERIES = "forget_deliveries";
    FORGET_EVENTS = "forget_events";
    FORGET_FILED_ATTEMPTS = "forget_filed_attempts";
    FORGET_FILED_DELIVERIES = "forget_filed_deliveries";
    FORGET_HOLDS = "forget_holds";
    FORGET_HOURS = "forget_hours";
    FORGET_IDEMPOTENCY_KEYS = "forget_idempotency_keys";
    FORGET_NOTE = "forget_note";
    FORGET_NOTICES = "forget_notices";
    FORGET_OBSTACLES = "forget_obstacles";
    IS_THERE = "is_there";
    KEEP_IDEMPOTENCY_KEY = "keep_idempotency_key";
    LOAD_ACCOUNT_TALLIES = "load_account_tallies";
    LOAD_LANES = "load_lanes";
    NAMED_AT = "named_at";
    NEXT_TO_FORGET = "next_to_forget";
    NOTED_TO_FORGET = "noted_to_forget";
    PROMOTE = "promote";
    PUT_JOB = "put_job";
    REPLAYED_TO_FORGET = "replayed_to_forget";
    REPLAYS_TO_FORGET = "replays_to_forget";
    RUNNING_JOBS = "running_jobs";
    SAVE_ACCOUNT_TALLY = "save_account_tally";
    SAVE_LANE = "save_lane";
    SAVE_TIMEOUTS = "save_timeouts";
    SET_META = "set_meta";
    SETTLE_FINAL = "settle_final";
    SETTLE_OPEN = "settle_open";
}
