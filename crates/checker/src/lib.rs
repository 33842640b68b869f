//! Judges the histories of a run against what Tidegate promises.
//!
//! A run, real or simulated, leaves [`history`] files: what producers sent and were told, what receivers saw, what went
//! wrong, what the API said. [`run`] reads them into compact records. Each file of [`invariant`] judges one promise, as a
//! pure function from the run to a [`Verdict`]. Nothing here knows the server's inside: no crate of it is used, and the
//! time zones are another implementation than the server's.
//!
//! ```no_run
//! let run = tidegate_checker::Run::load("/tmp/run".as_ref())?;
//! for verdict in tidegate_checker::judge_all(&run) {
//!     assert!(verdict.holds(), "{}: {:#?}", verdict.name, verdict.violations);
//! }
//! # Ok::<(), tidegate_checker::history::HistoryError>(())
//! ```

pub mod history;
pub mod invariant;
pub mod names;
mod pattern;
pub mod run;
mod signature;
pub mod table;
pub mod verdict;

pub use run::Run;
pub use verdict::Verdict;

/// Judges every promise.
pub fn judge_all(run: &Run) -> Vec<Verdict> {
    invariant::ALL.iter().map(|(_, judge)| judge(run)).collect()
}
