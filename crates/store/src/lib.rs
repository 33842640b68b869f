//! Durable state as verbs: what is accepted, what became of it, and what its owners asked for.
//!
//! One verb, one transaction. The store holds no policy: it keeps times, it never computes them. SQL lies in `sql/`, one
//! file per verb and dialect.
//!
//! ```text
//!   accept, record, change ──► writer thread: one group, one commit, one fsync ──► on_commit (the engine), answers
//!   everything that reads   ──► reader threads: short looks at the last commit
//! ```
//!
//! The public modules hold the verbs' types. The handle, the queues, the writer's groups, the kept counts and the reads are the
//! same for both engines; how a group is written, and where, is in [`sqlite`] and [`postgres`].

pub mod catalogue;
pub mod cluster;
mod codec;
mod counts;
pub mod delivery;
pub mod error;
pub mod event;
pub mod job;
pub mod lane;
pub mod list;
mod load;
mod names;
pub mod open;
pub mod outbox;
pub mod postgres;
mod queue;
mod read;
pub mod record;
mod shared;
mod source;
mod sql;
pub mod sqlite;
pub mod stats;
mod store;
pub mod transfer;
mod verbs;
mod work;
mod writer;

pub use error::StoreError;
pub use store::Store;

/// An account's row number: what an id is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountNo(pub u32);

/// A destination's row number: what an id is outside. Never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationNo(pub u32);
