//! Moving a whole store from SQLite to PostgreSQL: ids, states, counts and times stay what they are, so that a server goes on
//! there where the one here ended.
//!
//! ```text
//!   source, locked and read only ─► rows, table by table ─► batches ─► target: rows and position in one commit
//!   then, from both sides alone:    count and checksum of each table, compared
//! ```
//!
//! The position is stored in the target, with the rows: whatever is killed when, the same call goes on from there. No server
//! starts on the target before both sides were compared and found equal. What is read is in `sql/transfer/`, one file for each
//! table, with the columns of the target; how it is written and read back follows from those.

mod checksum;
mod copy;
mod place;
mod plan;
mod tables;
mod verify;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub use self::checksum::Sum;
pub(crate) use self::copy::Batch;
pub(crate) use self::place::{Key, Place, Stage};
pub(crate) use self::plan::{Plan, Types};
pub(crate) use self::tables::{TABLES, Table};
pub use self::verify::Difference;
use crate::StoreError;
use crate::postgres::Target;
use crate::sqlite::Origin;

/// What is to be moved where.
#[derive(Debug)]
pub struct Options {
    /// The target: `postgres://user:password@host/database`.
    pub url: String,
    /// The fingerprint of the key under which secrets are sealed, if there are any: no server with another one starts on the
    /// target.
    pub key_fingerprint: Option<Vec<u8>>,
    /// Whether to move, or only to compare.
    pub task: Task,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Moves everything, then compares.
    Move,
    /// Compares what an earlier transfer has moved.
    Verify,
}

/// The store that is moved. While this lives, no server starts on it.
pub struct Source {
    origin: Origin,
}

impl Source {
    /// Opens the store in a data directory, or in a file, to be read only.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        Origin::open(path).map(|origin| Self { origin })
    }

    /// The directory in which it lies.
    pub fn directory(&self) -> &Path {
        self.origin.directory()
    }

    /// What is sealed there.
    pub fn sealed(&self) -> Result<Vec<Vec<u8>>, TransferError> {
        self.origin.sealed()
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is being done.
    pub doing: Doing,
    /// With which table.
    pub table: &'static str,
    /// Rows of it that are done, and how many it has.
    pub rows: u64,
    /// How many it has.
    pub of: u64,
    /// The same of all tables together.
    pub all_rows: u64,
    /// How many all of them have.
    pub all_of: u64,
}

/// The two parts of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Rows go from here to there.
    Moving,
    /// Both sides are read and compared.
    Comparing,
}

/// A transfer that has ended well.
#[derive(Debug)]
pub struct Moved {
    /// Rows and checksum of each table, the same on both sides.
    pub tables: Vec<(&'static str, Sum)>,
    /// Where it began: rows that an earlier call had moved.
    pub before: u64,
    /// An earlier call had ended well already, and nothing was done.
    pub already: bool,
}

/// Why it could not be done, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// There is no store, or it cannot be read.
    #[error("cannot read the source {path}: {reason}")]
    Source {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A server runs on the source.
    #[error(
        "a server is running on the source {0}: stop it first (SIGTERM), then run the same command again"
    )]
    InUse(PathBuf),
    /// The source was written by an older version.
    #[error(
        "the source has schema {found}, this binary knows {known}: start this version's server on it once, stop it, then run \
         the same command again"
    )]
    Older {
        /// What it has.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// Servers run on the target.
    #[error("servers are running on the target ({}): stop them, and give a target that is empty", .0.join(", "))]
    Live(Vec<String>),
    /// There is something in the target.
    #[error(
        "the target is not empty (there are rows in {}): give an empty database, or empty this one: drop schema tidegate cascade",
        .0.join(", ")
    )]
    NotEmpty(Vec<String>),
    /// The target belongs to another transfer.
    #[error(
        "the target holds a part of another source, or of this one before a server ran on it again: empty the target (drop \
         schema tidegate cascade), then run the same command again"
    )]
    OtherSource,
    /// The target's servers had another key.
    #[error(
        "secrets in the target are sealed with another key than in the source: give an empty database, or empty this one: drop \
         schema tidegate cascade"
    )]
    OtherKey,
    /// Somebody else writes the same transfer.
    #[error("another `tidegate migrate` is writing to the target: let one of them end")]
    Overtaken,
    /// There is nothing to compare with.
    #[error("the target holds no finished transfer: run the same command without --verify-only")]
    Unfinished,
    /// The target did not take something, or is away.
    #[error("the target: {0}. What was moved stays: run the same command again, it goes on from there")]
    Target(String),
    /// The database cannot be used at all.
    #[error("the target: {0}")]
    Store(#[from] StoreError),
    /// Both sides are not the same.
    #[error(
        "source and target differ:\n  {}\nAs long as no server has run on the target, nothing there may differ: find out who \
         changed it, empty it (drop schema tidegate cascade), and run the command again",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
    )]
    Differ(Vec<Difference>),
    /// A thread could not be started, or fell over.
    #[error("a thread of the transfer ended early: {0}; run the same command again")]
    Thread(String),
}

/// Moves a store, or goes on with it, and compares both sides; `tell` hears how far it is. Blocks until that is done, and must
/// not be called within a runtime.
pub fn run(
    source: &mut Source,
    options: &Options,
    tell: &mut dyn FnMut(Progress),
) -> Result<Moved, TransferError> {
    let origin = &mut source.origin;
    let mut target = Target::open(&options.url, options.task)?;
    let plans = plan::all(origin, &target.types()?)?;
    let totals = plans.iter().map(|plan| origin.count(plan)).collect::<Result<Vec<u64>, _>>()?;
    let mut before = 0;
    if options.task == Task::Move {
        let place = match target.begin(&plans, &origin.mark()?, options.key_fingerprint.as_deref())? {
            Begun::At(place) => place,
            Begun::Already => return Ok(Moved { tables: Vec::new(), before, already: true }),
        };
        before = place.rows_before(&plans, &totals);
        copy::copy(origin, &mut target, &plans, &totals, tell)?;
        target.set_numbers(&origin.numbers()?)?;
    } else {
        target.may_compare()?;
    }
    let tables = verify::compare(origin, &target, &plans, &totals, tell)?;
    if options.task == Task::Move {
        target.end()?;
    }
    Ok(Moved { tables, before, already: false })
}

/// A text as the target can hold it: there, none has a NUL.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', " ").into() } else { text.into() }
}

/// Where a transfer begins.
pub(crate) enum Begun {
    /// Here.
    At(Place),
    /// It has ended well already.
    Already,
}
