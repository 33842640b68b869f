//! Every number that bounds something, in one place, with the reason for it.
//!
//! Those that a customer can set are the ranges of the wire contract; the others are ours.

use crate::time::Millis;

/// Requests in flight per destination: one receiver that needs more than this has a load balancer and several URLs.
pub const MAX_CONCURRENCY: u32 = 1_000;
/// What a destination gets that says nothing: enough to hide latency, too few to hurt a small server.
pub const DEFAULT_CONCURRENCY: u32 = 5;

/// The fastest rate that can be asked for, per minute: 10,000 a second is above what one lane sends.
pub const MAX_PER_MINUTE: u64 = 600_000;
/// The largest bucket: a burst beyond this is no shaping at all.
pub const MAX_BURST: u32 = 1_000_000;

/// Attempts that may be asked for: with an hour between them, 50 fill two days.
pub const MAX_ATTEMPTS: u32 = 50;
/// Delays in a retry policy: one before each further attempt, at most.
pub const MAX_DELAYS: usize = 50;
/// The shortest wait between two attempts of one delivery: below it a retry only adds load.
pub const MIN_DELAY: Millis = Millis::seconds(1);
/// The longest wait between two attempts: the default maximum age.
pub const MAX_DELAY: Millis = Millis::days(7);

/// The longest life an event may ask for.
pub const MAX_TTL: Millis = Millis::days(30);
/// How long a delivery is tried where nobody says otherwise.
pub const DEFAULT_MAX_AGE: Millis = Millis::days(7);
/// The longest that a delivery may be tried at all: the retention of the log.
pub const MAX_MAX_AGE: Millis = Millis::days(30);
/// How far ahead a delivery may be scheduled.
pub const MAX_DELIVER_AHEAD: Millis = Millis::days(90);
/// An attempt with less time than this before expiry would only be cut off: it is not started.
pub const MIN_TIME_TO_SEND: Millis = Millis::new(250);

/// The longest that a destination's own word (`Retry-After`) can close it: no header parks a destination for good.
pub const MAX_RETRY_AFTER: Millis = Millis::hours(24);
/// The shortest: `Retry-After: 0` must not make a busy loop.
pub const MIN_RETRY_AFTER: Millis = Millis::seconds(1);

/// One start in this many takes the longest waiting delivery of any priority, so that bulk never starves.
pub const STARTS_PER_OLDEST: u32 = 16;

/// With this many halted lines, each waiting for a person, the whole destination is paused.
pub const MAX_HALTED_LINES: usize = 1_000;

/// Different deliveries answered 410 before a destination is disabled: one may be a mistake of theirs.
pub const GONE_TO_DISABLE: usize = 3;
/// Failed attempts, without a success, before a destination is disabled.
pub const FAILURES_TO_DISABLE: u32 = 20;
/// Different deliveries among these.
pub const FAILING_DELIVERIES_TO_DISABLE: usize = 3;
/// Time under attempts, all failed, before a destination is disabled.
pub const FAILING_TIME_TO_DISABLE: Millis = Millis::days(5);
/// A longer gap between two attempts counts as this much of failing time: the rest was time without attempts.
pub const FAILING_GAP: Millis = Millis::hours(1);
