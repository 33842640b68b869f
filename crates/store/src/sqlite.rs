//! The store in a directory: SQLite, one writer thread that commits in groups, and a few readers.
//!
//! How it is opened is in [`open`], what a group does in `writer`, how a question is answered in `crate::read`.

mod connection;
mod failure;
mod inspect;
mod intern;
mod lock;
mod marker;
mod migrate;
pub mod open;
#[cfg(test)]
mod plans;
mod sql;
#[cfg(test)]
mod tests;
mod transfer;
mod writer;

pub use crate::open::Opened;
pub(crate) use connection::cell;
pub(crate) use failure::{is_of_the_file, of_read};
pub use inspect::{Contents, Inspection, Pages, inspect};
pub use open::Options;
pub(crate) use sql::{ATTEMPTS_UNFILED, COUNT_ATTEMPTS_UNFILED};
pub(crate) use transfer::Origin;
