//! Kept counts: what waits and what happened, summed over a group and written once for each destination.
//!
//! The writer knows every row, so it writes totals and reads nothing. What a group changes is apart until its commit.

use std::collections::{BTreeMap, HashMap};

use rusqlite::params;
use tidegate_core::delivery::Status;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Timestamp;

use super::Writer;
use super::accept::Belonging;
use crate::list::Stage;
use crate::sqlite::codec::{self, count};
use crate::sqlite::failure::Failure;
use crate::sqlite::shared::Shared;
use crate::sqlite::sql;
use crate::stats::Tally;
use crate::{AccountNo, DestinationNo};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// A destination's row.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct LaneRow {
    pub(in crate::sqlite) account: AccountNo,
    pub(in crate::sqlite) open: i64,
    pub(in crate::sqlite) bytes: i64,
    pub(in crate::sqlite) running: Running,
}

/// The hour that runs.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sqlite) struct Running {
    /// Its beginning.
    pub(in crate::sqlite) hour: i64,
    pub(in crate::sqlite) tally: Tally,
}

/// What a group changes of a destination.
#[derive(Debug)]
struct Touched {
    account: AccountNo,
    open: i64,
    bytes: i64,
    running: Running,
    state: Option<Vec<u8>>,
}

/// Whose hour it is, in the column `owner`.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Destination(DestinationNo),
    Account(AccountNo),
}

/// Every row, and what the group that is being written changes.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Counts {
    pub(in crate::sqlite) lanes: HashMap<DestinationNo, LaneRow>,
    pub(in crate::sqlite) accounts: HashMap<AccountNo, Running>,
    /// The highest number ever given.
    pub(in crate::sqlite) sequence: i64,
    touched: BTreeMap<DestinationNo, Touched>,
    touched_accounts: BTreeMap<AccountNo, Running>,
    /// Parts of hours that the group has left behind.
    over: Vec<(Owner, Running)>,
    given: i64,
    /// Rows as they will be once the group is committed.
    next: Vec<(DestinationNo, LaneRow)>,
    next_accounts: Vec<(AccountNo, Running)>,
}

impl Counts {
    /// A number was given to something that is being stored.
    pub(super) fn given(&mut self, seq: i64) {
        self.given = self.given.max(seq);
    }

    /// Whose a destination is, if it has a row.
    pub(super) fn account_of(&self, destination: DestinationNo) -> Option<AccountNo> {
        let touched = self.touched.get(&destination).map(|touched| touched.account);
        touched.or_else(|| self.lanes.get(&destination).map(|lane| lane.account))
    }

    /// A new delivery, which may be final already.
    pub(super) fn accepted(&mut self, of: &Belonging, status: &Status) {
        let ended = match status {
            Status::Final(end) => Some(codec::stage_of(end)),
            _ => None,
        };
        let lane = self.lane(of.destination, of.account, of.now);
        if ended.is_none() {
            lane.open += 1;
            lane.bytes += codec::length(of.bytes);
        }
        let happened = |tally: &mut Tally| {
            tally.accepted += 1;
            if let Some(stage) = ended {
                tally.end(stage);
            }
        };
        happened(&mut lane.running.tally);
        happened(self.account(of.account, of.now));
    }

    /// An open delivery became final.
    pub(super) fn ended(
        &mut self,
        destination: DestinationNo,
        account: AccountNo,
        stage: Stage,
        bytes: i64,
        now: Timestamp,
    ) {
        let lane = self.lane(destination, account, now);
        lane.open -= 1;
        lane.bytes -= bytes;
        lane.running.tally.end(stage);
        self.account(account, now).end(stage);
    }

    /// A request was made.
    pub(super) fn attempted(
        &mut self,
        destination: DestinationNo,
        account: AccountNo,
        outcome: &Outcome,
        now: Timestamp,
    ) {
        let happened = |tally: &mut Tally| {
            tally.attempts += 1;
            tally.successes += u64::from(matches!(outcome, Outcome::Success { .. }));
            tally.timeouts += u64::from(*outcome == Outcome::Timeout);
        };
        happened(&mut self.lane(destination, account, now).running.tally);
        happened(self.account(account, now));
    }

    /// A lane has a new state.
    pub(super) fn lane_state(
        &mut self,
        destination: DestinationNo,
        account: AccountNo,
        state: Vec<u8>,
        now: Timestamp,
    ) {
        self.lane(destination, account, now).state = Some(state);
    }

    fn lane(&mut self, destination: DestinationNo, account: AccountNo, now: Timestamp) -> &mut Touched {
        let hour = hour_of(now);
        let touched = self.touched.entry(destination).or_insert_with(|| {
            let running = Running { hour, tally: Tally::default() };
            Touched { account, open: 0, bytes: 0, running, state: None }
        });
        if touched.running.hour != hour {
            self.over.push((Owner::Destination(destination), touched.running));
            touched.running = Running { hour, tally: Tally::default() };
        }
        touched
    }

    fn account(&mut self, account: AccountNo, now: Timestamp) -> &mut Tally {
        let hour = hour_of(now);
        let running =
            self.touched_accounts.entry(account).or_insert(Running { hour, tally: Tally::default() });
        if running.hour != hour {
            self.over.push((Owner::Account(account), *running));
            *running = Running { hour, tally: Tally::default() };
        }
        &mut running.tally
    }

    /// The group is not: nothing of it happened.
    pub(super) fn roll_back(&mut self) {
        self.touched.clear();
        self.touched_accounts.clear();
        self.over.clear();
        self.next.clear();
        self.next_accounts.clear();
        self.given = 0;
    }

    /// The group is committed: its rows are the rows.
    pub(super) fn commit(&mut self, shared: &Shared) {
        shared.kept(&self.next);
        self.lanes.extend(self.next.drain(..));
        self.accounts.extend(self.next_accounts.drain(..));
        self.sequence = self.sequence.max(std::mem::take(&mut self.given));
    }
}

impl Writer<'_> {
    /// Writes what the group has changed: one row for each destination and account, in order.
    pub(super) fn write_counts(&mut self) -> Result<(), Failure> {
        for (destination, touched) in std::mem::take(&mut self.counts.touched) {
            self.write_lane(destination, &touched)?;
        }
        for (account, running) in std::mem::take(&mut self.counts.touched_accounts) {
            let before = self.counts.accounts.get(&account).copied().unwrap_or(running.empty());
            let (after, over) = before.and(running);
            self.counts.over.extend(over.map(|over| (Owner::Account(account), over)));
            let mut statement = self.connection.prepare_cached(sql::SAVE_ACCOUNT_TALLY)?;
            let [a, b, c, d, e, f, g, h] = after.tally.columns();
            statement.execute(params![account.0, after.hour, a, b, c, d, e, f, g, h])?;
            self.counts.next_accounts.push((account, after));
        }
        for (owner, over) in std::mem::take(&mut self.counts.over) {
            let (owner, no) = match owner {
                Owner::Destination(destination) => (0, destination.0),
                Owner::Account(account) => (1, account.0),
            };
            let mut statement = self.connection.prepare_cached(sql::ADD_HOUR)?;
            let [a, b, c, d, e, f, g, h] = over.tally.columns();
            statement.execute(params![owner, no, over.hour, a, b, c, d, e, f, g, h])?;
        }
        if self.counts.given > self.counts.sequence {
            self.connection.prepare_cached(sql::SET_META)?.execute(("sequence", self.counts.given))?;
        }
        Ok(())
    }

    fn write_lane(&mut self, destination: DestinationNo, touched: &Touched) -> Result<(), Failure> {
        let before = self.counts.lanes.get(&destination).copied().unwrap_or(LaneRow {
            account: touched.account,
            open: 0,
            bytes: 0,
            running: touched.running.empty(),
        });
        let (running, over) = before.running.and(touched.running);
        self.counts.over.extend(over.map(|over| (Owner::Destination(destination), over)));
        let row = LaneRow {
            account: before.account,
            open: before.open + touched.open,
            bytes: before.bytes + touched.bytes,
            running,
        };
        let [a, b, c, d, e, f, g, h] = running.tally.columns();
        self.hot.save_lane.execute(params![
            destination.0,
            row.account.0,
            row.open,
            row.bytes,
            running.hour,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            touched.state
        ])?;
        self.counts.next.push((destination, row));
        Ok(())
    }
}

impl Running {
    const fn empty(&self) -> Self {
        Self { hour: self.hour, tally: Tally::ZERO }
    }

    /// This hour and what happened since: the hour that runs now, and what belongs to one that is over.
    fn and(self, since: Self) -> (Self, Option<Self>) {
        let (later, earlier) = match self.hour.cmp(&since.hour) {
            std::cmp::Ordering::Equal => {
                let mut tally = self.tally;
                tally.add(&since.tally);
                return (Self { hour: self.hour, tally }, None);
            }
            std::cmp::Ordering::Less => (since, self),
            std::cmp::Ordering::Greater => (self, since),
        };
        (later, (earlier.tally != Tally::ZERO).then_some(earlier))
    }
}

impl Tally {
    /// As columns hold it, in the order of its fields.
    fn columns(&self) -> [i64; 8] {
        [
            count(self.accepted),
            count(self.delivered),
            count(self.dead_letter),
            count(self.expired),
            count(self.cancelled),
            count(self.attempts),
            count(self.successes),
            count(self.timeouts),
        ]
    }
    fn end(&mut self, stage: Stage) {
        match stage {
            Stage::Open => {}
            Stage::Delivered => self.delivered += 1,
            Stage::DeadLetter => self.dead_letter += 1,
            Stage::Expired => self.expired += 1,
            Stage::Cancelled => self.cancelled += 1,
        }
    }
}

/// The beginning of the hour that holds `now`.
pub(in crate::sqlite) const fn hour_of(now: Timestamp) -> i64 {
    now.as_millis().div_euclid(HOUR) * HOUR
}
