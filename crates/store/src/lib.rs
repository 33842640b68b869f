//! Durable state as verbs: what is accepted, what became of it, and what its owners asked for.
//!
//! One verb, one transaction. The store holds no policy: it keeps times, it never computes them. SQL lies in `sql/`, one
//! file per verb.
//!
//! ```text
//!   accept, record, change ──► writer thread: one group, one commit, one fsync ──► on_commit (the engine), answers
//!   everything that reads   ──► reader threads: short looks at the last commit
//! ```
//!
//! What a verb needs to know is in the types of these modules; how it is stored, in [`sqlite`].

pub mod catalogue;
pub mod delivery;
pub mod error;
pub mod event;
pub mod job;
pub mod lane;
pub mod list;
pub mod record;
pub mod sqlite;
pub mod stats;

pub use error::StoreError;
pub use sqlite::Store;

/// An account's row number: what an id is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountNo(pub u32);

/// A destination's row number: what an id is outside. Never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationNo(pub u32);
