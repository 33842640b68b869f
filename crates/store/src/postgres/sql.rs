//! The statements of the writer, one file each under `sql/postgres/`. Where a file names `{first}` and `{next}`, these are
//! numbers to be put in: the names of tables cannot be values.

macro_rules! statements {
    ($($name:ident = $file:literal;)*) => {
        $(pub(super) const $name: &str = include_str!(concat!("../../sql/postgres/", $file, ".sql"));)*
    };
}

statements! {
    ACCEPT_EVENTS = "accept_events";
    ACCEPT_FINAL = "accept_final";
    ACCEPT_OPEN = "accept_open";
    ACCOUNT_IS_THERE = "account_is_there";
    ACCOUNT_OF_DESTINATION = "account_of_destination";
    ADD_ACCOUNT = "add_account";
    ADD_ATTEMPTS = "add_attempts";
    ADD_AUDIT_ENTRY = "add_audit_entry";
    ADD_DESTINATION = "add_destination";
    ADD_EVENT_TYPE = "add_event_type";
    ADD_HOLDS = "add_holds";
    ADD_HOURS = "add_hours";
    ADD_KEY = "add_key";
    ADD_META = "add_meta";
    ADD_NODE = "add_node";
    ADD_NOTICES = "add_notices";
    ADD_PARTITION = "add_partition";
    ADD_RETRY_PLANS = "add_retry_plans";
    ADD_ROUTE = "add_route";
    ADD_TYPE_NAMES = "add_type_names";
    ADD_VERSION = "add_version";
    ARE_THERE = "are_there";
    BEGIN_GROUP = "begin_group";
    BEGIN_MIGRATION = "begin_migration";
    BEGIN_PARTITION = "begin_partition";
    COUNT_PARTITION = "count_partition";
    DESTINATION_IS_THERE = "destination_is_there";
    DROP_ACCOUNT = "drop_account";
    DROP_DESTINATION = "drop_destination";
    DROP_DESTINATIONS_OF_ACCOUNT = "drop_destinations_of_account";
    DROP_EVENT_TYPE = "drop_event_type";
    DROP_EVENT_TYPES_OF_ACCOUNT = "drop_event_types_of_account";
    DROP_EXTERNAL_IDS = "drop_external_ids";
    DROP_IDEMPOTENCY_KEYS = "drop_idempotency_keys";
    DROP_KEY = "drop_key";
    DROP_KEYS_OF_ACCOUNT = "drop_keys_of_account";
    DROP_NODES = "drop_nodes";
    DROP_PARTITION = "drop_partition";
    DROP_ROUTE = "drop_route";
    DROP_ROUTES_OF_ACCOUNT = "drop_routes_of_account";
    DROP_ROUTES_OF_DESTINATION = "drop_routes_of_destination";
    DURABILITY = "durability";
    EVENT_TYPE_IS_THERE = "event_type_is_there";
    FIND_EXTERNAL_IDS = "find_external_ids";
    FIND_IDEMPOTENCY_KEYS = "find_idempotency_keys";
    FIND_REPLAYED_EVENTS = "find_replayed_events";
    FIND_RETRY_PLANS = "find_retry_plans";
    FIND_TYPE_NAMES = "find_type_names";
    FORGET_EVENTS = "forget_events";
    FORGET_EXTERNAL_IDS = "forget_external_ids";
    FORGET_HOLDS = "forget_holds";
    FORGET_HOURS = "forget_hours";
    FORGET_IDEMPOTENCY_KEYS = "forget_idempotency_keys";
    FORGET_NOTES = "forget_notes";
    FORGET_NOTICES = "forget_notices";
    GET_VERSION = "get_version";
    IS_MADE = "is_made";
    KEEP_EXTERNAL_IDS = "keep_external_ids";
    KEEP_IDEMPOTENCY_KEYS = "keep_idempotency_keys";
    KEEP_SURVIVORS = "keep_survivors";
    LAST_GROUP = "last_group";
    LOCK_NODES = "lock_nodes";
    MAKE_SCHEMA = "make_schema";
    MISSING_PARTITIONS = "missing_partitions";
    NOTE_KEPT = "note_kept";
    NOTE_SURVIVORS = "note_survivors";
    NOTED_TO_FORGET = "noted_to_forget";
    PARTITIONS = "partitions";
    PROMOTE = "promote";
    PUT_JOB = "put_job";
    RELEASE_SLOTS = "release_slots";
    SAVE_ACCOUNT_TALLIES = "save_account_tallies";
    SAVE_LANE_COUNTS = "save_lane_counts";
    SAVE_LANES = "save_lanes";
    SET_ACCOUNT = "set_account";
    SET_DESTINATION = "set_destination";
    SET_EVENT_TYPE = "set_event_type";
    SET_META = "set_meta";
    SETTLE_FINAL = "settle_final";
    SETTLE_OPEN = "settle_open";
    STALE_SLOTS = "stale_slots";
    SURVIVORS = "survivors";
    TAKE_SLOTS = "take_slots";
}
