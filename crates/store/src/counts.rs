//! Kept counts: what waits and what happened, summed over a group and written once for each destination.
//!
//! The writer makes every change itself, so it keeps the totals in memory, writes them and reads nothing. A group's changes are
//! kept apart until its commit.

use std::collections::{BTreeMap, HashMap};

use tidegate_core::delivery::Status;
use tidegate_core::id::DeliveryId;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Timestamp;

use crate::codec::{self, count};
use crate::event::{NewEvent, NewReplay};
use crate::list::Stage;
use crate::shared::Shared;
use crate::stats::Tally;
use crate::{AccountNo, DestinationNo};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// A destination's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneRow {
    pub(crate) account: AccountNo,
    pub(crate) open: i64,
    pub(crate) bytes: i64,
    pub(crate) running: Running,
}

/// The hour that runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    /// Its beginning.
    pub(crate) hour: i64,
    pub(crate) tally: Tally,
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

/// Whose hour it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Destination(DestinationNo),
    Account(AccountNo),
}

impl Owner {
    /// In the columns `owner` and `no`.
    pub(crate) const fn columns(self) -> (i64, u32) {
        match self {
            Self::Destination(destination) => (0, destination.0),
            Self::Account(account) => (1, account.0),
        }
    }
}

/// What a new delivery belongs to.
pub(crate) struct Belonging {
    pub(crate) account: AccountNo,
    pub(crate) destination: DestinationNo,
    pub(crate) event_seq: i64,
    pub(crate) type_no: i64,
    pub(crate) bytes: usize,
    pub(crate) replay_of: Option<DeliveryId>,
    pub(crate) now: Timestamp,
}

impl Belonging {
    /// One that an event is accepted with.
    pub(crate) fn routed(event: &NewEvent, destination: DestinationNo, type_no: i64, now: Timestamp) -> Self {
        Self {
            account: event.account,
            destination,
            event_seq: codec::seq(event.message.id.sequence()),
            type_no,
            bytes: event.message.payload.len(),
            replay_of: None,
            now,
        }
    }

    /// One that is added to an event of this account later.
    pub(crate) fn replayed(replay: &NewReplay, account: AccountNo, type_no: i64, bytes: usize) -> Self {
        Self {
            account,
            destination: replay.destination,
            event_seq: codec::seq(replay.event.sequence()),
            type_no,
            bytes,
            replay_of: Some(replay.replay_of),
            now: replay.delivery.accepted_at,
        }
    }
}

/// Every row, and what the group that is being written changes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) lanes: HashMap<DestinationNo, LaneRow>,
    pub(crate) accounts: HashMap<AccountNo, Running>,
    /// The highest number ever given.
    pub(crate) sequence: i64,
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
    pub(crate) fn given(&mut self, seq: i64) {
        self.given = self.given.max(seq);
    }

    /// Whose a destination is, if it has a row.
    pub(crate) fn account_of(&self, destination: DestinationNo) -> Option<AccountNo> {
        let touched = self.touched.get(&destination).map(|touched| touched.account);
        touched.or_else(|| self.lanes.get(&destination).map(|lane| lane.account))
    }

    /// A new delivery, which may be final already.
    pub(crate) fn accepted(&mut self, of: &Belonging, status: &Status) {
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
    pub(crate) fn ended(
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
    pub(crate) fn attempted(
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
    pub(crate) fn lane_state(
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
    pub(crate) fn roll_back(&mut self) {
        self.touched.clear();
        self.touched_accounts.clear();
        self.over.clear();
        self.next.clear();
        self.next_accounts.clear();
        self.given = 0;
    }

    /// The group is committed: its rows are the rows.
    pub(crate) fn commit(&mut self, shared: &Shared) {
        shared.kept(&self.next);
        self.lanes.extend(self.next.drain(..));
        self.accounts.extend(self.next_accounts.drain(..));
        self.sequence = self.sequence.max(std::mem::take(&mut self.given));
    }
}

/// What a group has to write of its counts: one row for each destination, account and hour, in order.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Destinations, each with its lane's new state, if there is one.
    pub(crate) lanes: Vec<(DestinationNo, LaneRow, Option<Vec<u8>>)>,
    pub(crate) accounts: Vec<(AccountNo, Running)>,
    /// What belongs to hours that are over, once for each.
    pub(crate) hours: Vec<(Owner, Running)>,
    /// The highest number ever given, if it is a new one.
    pub(crate) sequence: Option<i64>,
}

impl Counts {
    /// Adds what the group has changed to what was there.
    pub(crate) fn totals(&mut self) -> Totals {
        let mut totals = Totals::default();
        for (destination, touched) in std::mem::take(&mut self.touched) {
            let row = self.lane_total(destination, &touched);
            self.next.push((destination, row));
            totals.lanes.push((destination, row, touched.state));
        }
        for (account, running) in std::mem::take(&mut self.touched_accounts) {
            let before = self.accounts.get(&account).copied().unwrap_or(running.empty());
            let (after, over) = before.and(running);
            self.over.extend(over.map(|over| (Owner::Account(account), over)));
            self.next_accounts.push((account, after));
            totals.accounts.push((account, after));
        }
        let mut hours: BTreeMap<(Owner, i64), Tally> = BTreeMap::new();
        for (owner, over) in std::mem::take(&mut self.over) {
            hours.entry((owner, over.hour)).or_default().add(&over.tally);
        }
        totals.hours =
            hours.into_iter().map(|((owner, hour), tally)| (owner, Running { hour, tally })).collect();
        totals.sequence = Some(self.given).filter(|given| *given > self.sequence);
        totals
    }

    fn lane_total(&mut self, destination: DestinationNo, touched: &Touched) -> LaneRow {
        let before = self.lanes.get(&destination).copied().unwrap_or(LaneRow {
            account: touched.account,
            open: 0,
            bytes: 0,
            running: touched.running.empty(),
        });
        let (running, over) = before.running.and(touched.running);
        self.over.extend(over.map(|over| (Owner::Destination(destination), over)));
        LaneRow {
            account: before.account,
            open: before.open + touched.open,
            bytes: before.bytes + touched.bytes,
            running,
        }
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
    pub(crate) fn columns(&self) -> [i64; 8] {
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
pub(crate) const fn hour_of(now: Timestamp) -> i64 {
    now.as_millis().div_euclid(HOUR) * HOUR
}
