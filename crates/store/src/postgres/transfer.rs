//! The target of a transfer: an empty database that is filled batch by batch.
//!
//! How far it is stands in a mark (`transfer`). A batch moves the mark and adds its rows in one commit, and whoever finds the mark
//! moved by another stops. While the mark is there, no node registers: both are looked at under the lock of registrations.

use std::collections::BTreeMap;
use std::time::Duration;

use super::address::Address;
use super::failure::Failure;
use super::link::{Habit, Link};
use super::partitions::Partitions;
use super::shared_work::KEY_FINGERPRINT;
use super::value::typed;
use super::{Options, migrate, open, sql};
use crate::StoreError;
use crate::source::{Row, params};
use crate::transfer::{Batch, Begun, Place, Plan, Stage, TABLES, Task, TransferError, Types};

/// What a server is told that is started too early.
pub(super) const UNFINISHED: &str = "a transfer into it is not finished: run the same `tidegate migrate` again, it goes on where it was cut off";

/// The mark of a transfer that is under way, and of one that has ended well.
const UNDER_WAY: &str = "transfer";
const ENDED: &str = "transferred";

/// How long an answer may take: a batch brings large payloads to many indexes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A batch begins. Its commit need not be waited for: if the server forgets it, then together with the mark.
const BEGIN: &str = "begin; set local synchronous_commit = off";

/// Columns whose numbers the database gives, and what the source calls them.
const NUMBERED: [(&str, &str); 8] = [
    ("accounts", "tidegate.accounts_no_seq"),
    ("audit_log", "tidegate.audit_log_seq_seq"),
    ("destinations", "tidegate.destinations_no_seq"),
    ("holds", "tidegate.holds_no_seq"),
    ("jobs", "tidegate.jobs_no_seq"),
    ("notices", "tidegate.notices_no_seq"),
    ("retry_plans", "tidegate.retry_plans_no_seq"),
    ("type_names", "tidegate.type_names_no_seq"),
];

/// A database that is filled.
pub(crate) struct Target {
    link: Link,
    partitions: Partitions,
    place: Place,
}

/// Whether a transfer into this database is not finished.
pub(super) fn is_unfinished(link: &Link) -> Result<bool, Failure> {
    Ok(mark(link, UNDER_WAY)?.is_some())
}

/// One of the single texts that all nodes have in common.
pub(super) fn mark(link: &Link, name: &str) -> Result<Option<String>, Failure> {
    let found = link.ask(sql::GET_MARK, typed(params![name]))?.rows;
    Ok(found.first().map(|row| row.get(0)))
}

impl Target {
    /// Connects, and makes the schema where something is to be moved.
    pub(crate) fn open(url: &str, task: Task) -> Result<Self, TransferError> {
        let link = Link::with(Address::parse(url)?, Habit::Various, PATIENCE)?;
        link.connect()?;
        open::check(&link)?;
        match task {
            Task::Move => migrate::run(&link)?,
            Task::Verify => match migrate::versions(&link)? {
                (Some(found), known) if found == known => {}
                _ => return Err(TransferError::Unfinished),
            },
        }
        let width = open::width(&link, Options::PARTITION)?;
        let partitions = Partitions::load(&link, width)?;
        Ok(Self { link, partitions, place: Place { source: String::new(), stage: Stage::Copied } })
    }

    /// The type of every column.
    pub(crate) fn types(&self) -> Result<Types, TransferError> {
        let rows = self.link.ask(sql::TRANSFER_COLUMNS, Vec::new())?.rows;
        Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect())
    }

    /// Begins a transfer, or finds out how far it is.
    pub(crate) fn begin(
        &mut self,
        plans: &[Plan],
        source: &str,
        key: Option<&[u8]>,
    ) -> Result<Begun, TransferError> {
        let link = &self.link;
        let begun = link.transact("begin", || {
            link.ask(sql::BEGIN_REGISTRATION, Vec::new())?;
            if let Some(text) = mark(link, UNDER_WAY)? {
                return Ok(go_on(&text, source));
            }
            if mark(link, ENDED)?.is_some_and(|ended| ended == source) {
                return Ok(Ok(Begun::Already));
            }
            if let Err(refused) = vacant(link)? {
                return Ok(Err(refused));
            }
            if let Some(key) = key.map(super::key_mark) {
                link.ask(sql::ADD_MARK, typed(params![KEY_FINGERPRINT, &key]))?;
                if mark(link, KEY_FINGERPRINT)? != Some(key) {
                    return Ok(Err(TransferError::OtherKey));
                }
            }
            let place = Place::first(plans, source);
            link.ask(sql::ADD_MARK, typed(params![UNDER_WAY, text(&place)?]))?;
            Ok(Ok(Begun::At(place)))
        })??;
        if let Begun::At(place) = &begun {
            self.place = place.clone();
        }
        Ok(begun)
    }

    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    /// Adds the rows of a batch, and moves on.
    pub(crate) fn write(&mut self, plan: &Plan, batch: Batch) -> Result<(), TransferError> {
        let named = |failure| match TransferError::from(failure) {
            TransferError::Target(why) => TransferError::Target(format!("{why} (in {})", plan.table.name)),
            other => other,
        };
        let Batch { rows, count, last: after, numbers, .. } = batch;
        self.partitions.prepare(&self.link, numbers.into_iter()).map_err(named)?;
        let name = plan.table.name;
        let before = match &self.place.stage {
            Stage::Table { name: at, rows, .. } if at == name => *rows,
            _ => 0,
        };
        let stage = Stage::Table { name: name.to_owned(), after, rows: before + count };
        self.go(BEGIN, stage, |link| link.ask(&plan.insert, rows.values()).map(|_| ()), named)
    }

    /// Moves on without a row.
    pub(crate) fn advance(&mut self, stage: Stage) -> Result<(), TransferError> {
        self.go(BEGIN, stage, |_| Ok(()), TransferError::from)
    }

    /// One commit: the mark is moved, and something is done.
    fn go(
        &mut self,
        begin: &str,
        stage: Stage,
        run: impl FnOnce(&Link) -> Result<(), Failure>,
        named: impl FnOnce(Failure) -> TransferError,
    ) -> Result<(), TransferError> {
        let next = Place { source: self.place.source.clone(), stage };
        let link = &self.link;
        let done = link.transact(begin, || {
            let moved = params![UNDER_WAY, text(&self.place)?, text(&next)?];
            match link.ask(sql::MOVE_MARK, typed(moved))?.changed {
                1 => run(link),
                _ => Err(Failure::Gone),
            }
        });
        done.map_err(named)?;
        self.place = next;
        Ok(())
    }

    /// All rows are there: sets what goes on counting from them, and how the source was left.
    pub(crate) fn set_numbers(&mut self, numbers: &BTreeMap<String, i64>) -> Result<(), TransferError> {
        let number = |name: &str| numbers.get(name).copied().unwrap_or(0);
        let set = |link: &Link| {
            for (name, sequence) in NUMBERED {
                link.ask(sql::TRANSFER_SET_LAST_NUMBER, typed(params![sequence, number(name)]))?;
            }
            link.ask(sql::TRANSFER_SET_SEQUENCE, typed(params![number("sequence")]))?;
            link.ask(sql::TRANSFER_SET_CLEAN, typed(params![number("clean_stop")]))?;
            // Here events below it were looked at by retention, there those up to it.
            let cursor = number("forget_cursor") + 1;
            for name in ["forget_cursor", "forget_ahead"] {
                link.ask(sql::SET_META, typed(params![name, cursor]))?;
            }
            Ok(())
        };
        self.go("begin", Stage::Copied, set, TransferError::from)?;
        // Until the server has looked at its new tables by itself, it would plan as if they were empty.
        let all =
            TABLES.iter().map(|table| format!("tidegate.{}", table.name)).collect::<Vec<_>>().join(", ");
        Ok(self.link.batch(&format!("analyze {all}"))?)
    }

    /// Whether there is something to compare that nobody changes.
    pub(crate) fn may_compare(&self) -> Result<(), TransferError> {
        if is_unfinished(&self.link)? {
            return Err(TransferError::Unfinished);
        }
        let live = live(&self.link)?;
        if live.is_empty() { Ok(()) } else { Err(TransferError::Live(live)) }
    }

    /// Single numbers, by the names that the source has for them.
    pub(crate) fn numbers(&self) -> Result<BTreeMap<String, i64>, TransferError> {
        let rows = self.link.ask(sql::TRANSFER_NUMBERS, Vec::new())?.rows;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// All rows of a table.
    pub(crate) fn walk(
        &self,
        plan: &Plan,
        each: &mut dyn FnMut(&Row<'_>) -> crate::source::Result<()>,
    ) -> Result<(), TransferError> {
        self.link.each_row(&plan.read, |row| each(&Row::Postgres(row)))?.map_err(StoreError::from)?;
        Ok(())
    }

    /// Both sides are the same: from now on servers may start.
    pub(crate) fn end(&self) -> Result<(), TransferError> {
        let link = &self.link;
        Ok(link.transact("begin", || {
            link.ask(sql::DROP_MARK, typed(params![UNDER_WAY]))?;
            link.ask(sql::ADD_MARK, typed(params![ENDED, &self.place.source])).map(|_| ())
        })?)
    }
}

/// Goes on where an earlier call was cut off, if it was this one.
fn go_on(text: &str, source: &str) -> Result<Begun, TransferError> {
    let place: Option<Place> = serde_json::from_str(text).ok();
    place.filter(|place| place.source == source).map(Begun::At).ok_or(TransferError::OtherSource)
}

fn text(place: &Place) -> Result<String, Failure> {
    serde_json::to_string(place).map_err(|error| Failure::Refused(error.to_string()))
}

/// Whether nobody works with the database, and nothing is in it. Places of nodes that are gone are cleared away.
fn vacant(link: &Link) -> Result<Result<(), TransferError>, Failure> {
    let live = live(link)?;
    if !live.is_empty() {
        return Ok(Err(TransferError::Live(live)));
    }
    link.ask(sql::DROP_NODES, typed(params![0_i64]))?;
    let names = TABLES.iter().map(|table| table.name).chain(["outbox", "orders"]);
    let looks = names.map(|name| format!("select '{name}' where exists (select from tidegate.{name})"));
    let found = link.ask(&looks.collect::<Vec<_>>().join(" union all "), Vec::new())?.rows;
    let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
    Ok(if found.is_empty() { Ok(()) } else { Err(TransferError::NotEmpty(found)) })
}

/// The names of nodes whose leases run.
fn live(link: &Link) -> Result<Vec<String>, Failure> {
    let nodes = link.ask(sql::ROLL_NODES, Vec::new())?.rows;
    let live = nodes.iter().filter(|row| row.get::<_, i64>(6) > 0);
    Ok(live.map(|row| row.get(2)).collect())
}

impl From<Failure> for TransferError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gone => Self::Overtaken,
            Failure::Full => Self::Target("its disk is full: make room".to_owned()),
            Failure::Lost(text) | Failure::Unavailable(text) => {
                Self::Target(format!("it cannot be reached ({text})"))
            }
            Failure::Again(text) | Failure::Refused(text) | Failure::Taken(text) => Self::Target(text),
        }
    }
}
