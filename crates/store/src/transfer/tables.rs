//! The tables of the target that a transfer fills, in this order, and how each is walked through in the source.

/// One table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in the target, and in progress and errors.
    pub(crate) name: &'static str,
    /// What is read of the source: all its columns, in order of the key, after the values of it that are bound.
    pub(crate) sql: &'static str,
    /// The columns of the key.
    pub(crate) key: &'static [&'static str],
    /// The column by which it is partitioned.
    pub(crate) partition: Option<&'static str>,
}

macro_rules! tables {
    ($($name:ident by $key:expr $(, in partitions by $partition:literal)?;)*) => {
        &[$(Table {
            name: stringify!($name),
            sql: include_str!(concat!("../../sql/transfer/", stringify!($name), ".sql")),
            key: &$key,
            partition: { let by: &[&str] = &[$($partition)?]; if by.is_empty() { None } else { Some(by[0]) } },
        }),*]
    };
}

/// All of them. What the source has beside these is the lists that PostgreSQL has as indexes (`deliveries_filed`,
/// `attempts_filed`), and single numbers (`meta`), which are set at the end.
pub(crate) const TABLES: &[Table] = tables! {
    type_names by ["no"];
    retry_plans by ["no"];
    accounts by ["no"];
    api_keys by ["id"];
    destinations by ["no"];
    routes by ["id"];
    event_types by ["account_no", "event_type"];
    audit_log by ["seq"];
    lane_counts by ["destination_no"];
    lanes by ["destination_no"];
    account_tallies by ["account_no"];
    hours by ["owner", "no", "hour"];
    holds by ["no"];
    notices by ["no"];
    idempotency_keys by ["account_no", "endpoint", "key"];
    jobs by ["id"];
    forget_later by ["at", "event_seq"];
    events by ["seq"], in partitions by "seq";
    external_ids by ["account_no", "external_id", "type_no"];
    open_deliveries by ["seq"];
    deliveries by ["seq"], in partitions by "seq";
    attempts by ["seq"], in partitions by "delivery_seq";
};
