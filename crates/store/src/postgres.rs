//! The store in a PostgreSQL database, for one node or several.
//!
//! ```text
//!   a group ─► begin, fence, look up, settle ─► decide ─► insert, count, commit      two round trips, whatever its size
//! ```
//!
//! What is open lies in one table, what is final in partitions by the number of acceptance; retention drops those. Every
//! result is written under the epoch of its destination's slot: where another node has taken the slot, it is refused. Nothing
//! is kept in a session, so a pooler in transaction mode may stand between.

mod address;
mod failure;
mod intern;
mod link;
mod migrate;
pub mod open;
mod partitions;
mod slots;
mod sql;
mod value;
mod writer;

pub(crate) use failure::Failure;
pub(crate) use link::Link;
pub use open::Options;
