//! The store in a PostgreSQL database, for one node or several.
//!
//! ```text
//!   a group ─► begin, fence, look up, settle ─► decide ─► insert, count, commit      two round trips, whatever its size
//! ```
//!
//! What is open lies in one table, what is final in partitions by the number of acceptance; `retention` drops those, on a
//! thread and a connection of its own. Every result is written under the epoch of its destination's slot: where another node
//! has taken the slot, it is refused. Nothing is kept in a session, so a pooler in transaction mode may stand between.

mod address;
mod cluster;
mod failure;
mod inspect;
mod intern;
mod lanes;
mod link;
mod listen;
mod migrate;
mod news;
pub mod open;
mod outbox;
mod partitions;
mod retention;
mod shared_work;
mod slots;
mod sql;
mod transfer;
mod value;
mod weather;
mod writer;

pub(crate) use failure::Failure;
pub use inspect::{Inspection, inspect};
pub(crate) use lanes::lanes_of_slots;
pub(crate) use link::Link;
pub use open::Options;
pub(crate) use outbox::{count_refused_outbox, outbox, refuse_outbox, refused_outbox};
pub(crate) use shared_work::{
    KEY_FINGERPRINT, adopt_jobs, agreed, clock, key_mark, order_is_open, orders_of_slots,
};
pub(crate) use transfer::Target;
pub(crate) use value::Rows;
