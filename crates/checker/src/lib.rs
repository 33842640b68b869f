//! Judges the histories of a run against what Tidegate promises.
//!
//! A run, real or simulated, leaves [`history`] files: what producers sent and were told, what receivers saw, what went
//! wrong, what the API said. [`run`] reads them into compact records. Each file of [`invariant`] judges one promise, as a
//! pure function from the run to a [`verdict`]. Nothing here knows the server's inside: no crate of it is used, and the
//! time zones are another implementation than the server's.

pub mod history;
