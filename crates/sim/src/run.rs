//! The driver of a simulated node: a heap of what is to happen, and the real dispatcher in the middle.
//!
//! ```text
//!   publisher ─ Arrive ─► accept ─ commit ─► Dispatcher::step ─ Send ─► world ─ Answer ─┐
//!                                                 ▲  │ Settle                           │
//!                                                 │  └─► commit (a crash takes what is not in it)
//!                                                 └─────────────────────────────────────┘
//! ```
//!
//! Chance is drawn in a fixed order and events of the same millisecond keep the order in which they were planned, so one
//! seed is one trace.

mod node;
mod setup;
mod watch;

pub use crate::backing::Storage;
pub use node::{Sim, Work};
pub use setup::{Commit, Destination, Faults, Setup};
pub use watch::{Note, Observer, View};
