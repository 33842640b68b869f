//! What can go wrong with the store, and what to do about it.

use std::path::PathBuf;

/// The store could not do what was asked. A lost race or a taken name is not one of these: it is an answer of the verb.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room. Nothing was written; it goes on by itself when there is.
    #[error("the disk is full: free some space; deliveries and acceptance go on by themselves then")]
    Full,
    /// The database does not answer. What was asked for may have been done or not: the idempotency key of a request settles it.
    #[error(
        "the database cannot be reached ({0}): deliveries and acceptance go on by themselves when it can"
    )]
    Unavailable(String),
    /// The disk or the file is broken: stop, and recover by opening it again.
    #[error(
        "the store is broken ({0}): the process must leave and open it again; what was acknowledged is in the file"
    )]
    Broken(String),
    /// What was to be written cannot be stored as it is: a fault of ours. Nothing of it was written, all else goes on.
    #[error("the store refused it ({0}): this is a fault of the server; please report it")]
    Refused(String),
    /// The store was closed: we are leaving.
    #[error("the store is closed: the server is shutting down")]
    Closed,
    /// Another process has the data directory.
    #[error("{0} is in use by another process: stop that one, or give this one a --data-dir of its own")]
    InUse(PathBuf),
    /// The schema is newer than this binary.
    #[error(
        "the store has schema {found}, this binary knows {known}: start a newer binary; nothing was changed"
    )]
    Newer {
        /// What the file says.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// The database cannot be used.
    #[error("cannot use the database: {0}")]
    Database(String),
    /// The data directory cannot be used.
    #[error("cannot use the data directory {path}: {reason}")]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
