//! The thread of the cluster: leases, slots, and what nodes tell one another, on a connection of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::lane::LastStop;
use tidegate_core::slots::{Epoch, Held, LEASE, Member, NodeNo, Roll, SLOTS, Seat, Slot};
use tidegate_core::time::{Millis, Timestamp};
use tokio_postgres::Row;

use super::failure::Failure;
use super::lanes::other_counts;
use super::link::{Answer, Asked, Link, Param};
use super::listen::FREED;
use super::news::{Cursors, KEPT};
use super::slots::{FORGOTTEN, GONE};
use super::sql;
use super::value::{Rows, row, typed};
use crate::StoreError;
use crate::cluster::{Ask, Granted, Identity, Node, NodeRow, Renewed};
use crate::codec;
use crate::queue::Taken;
use crate::shared::Reader;
use crate::source::{Source, params};
use crate::writer::now;

/// How long an answer may take: a lease ends in the meantime.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_500);
/// Between two looks at what else is to be done.
const TICK: Duration = Duration::from_secs(1);

/// Between two hints that there is something for others.
const HINTS: Duration = Duration::from_millis(5);
/// How often what is old is looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// How often what the others have counted is read; where that takes long, seldom enough to be idle nine tenths of the time …
const COUNT: Duration = Duration::from_secs(1);
/// … but no more seldom than this: it may have taken long only because nothing came through.
const COUNT_AT_LEAST: Duration = Duration::from_secs(3);

/// What the thread works with.
pub(super) struct Desk {
    reader: Reader,
    cursors: Cursors,
    /// There are, or were, other nodes.
    others: Others,
    /// When the others were told last, and whether they are to be.
    told_at: Option<Instant>,
    to_tell: bool,
    /// When something was last written for others.
    wrote_at: Option<Instant>,
    swept_at: Instant,
    counted_at: Instant,
}

/// What the last renewals showed of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// There are none.
    None,
    /// There were some a moment ago: what they have counted last is to be read.
    Gone,
    There,
    /// Of some the leases ended so long ago that their places may be given to others.
    Forgotten,
}

impl Desk {
    pub(super) fn new(reader: Reader, cursors: Cursors) -> Self {
        Self {
            reader,
            cursors,
            others: Others::None,
            told_at: None,
            to_tell: false,
            wrote_at: Some(now()),
            swept_at: now(),
            counted_at: now(),
        }
    }

    /// Serves until the store is closed or let go of.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.reader.shared);
        let Some(node) = &shared.node else { return };
        loop {
            let patience = if self.to_tell { HINTS } else { TICK };
            let asks = match node.asks.take(patience, (0, Duration::ZERO), |_| false) {
                Taken::Some(asks) => asks,
                Taken::Nothing => Vec::new(),
                Taken::Closed => return,
            };
            // Whoever asked finds the answer dropped; the next one must still find somebody.
            let served = catch_unwind(AssertUnwindSafe(|| {
                asks.into_iter().for_each(|ask| self.serve(node, ask));
                if let Err(failure) = self.tend(node) {
                    tracing::debug!(?failure, "a chore of the cluster is left for later");
                }
            }));
            if served.is_err() {
                tracing::error!("a step of the cluster ended by a panic");
                self.link().cut();
            }
        }
    }

    fn link(&self) -> &Link {
        match &self.reader.source {
            Source::Postgres(link) => link,
            Source::Sqlite(_) => unreachable!("there is no cluster on SQLite"),
        }
    }

    fn serve(&mut self, node: &Node, ask: Ask) {
        match ask {
            Ask::Renew { leaving, answer } => drop(answer.send(self.renew(node, leaving))),
            Ask::Claim { slots, answer } => {
                drop(answer.send(self.claim(node, &slots).map_err(StoreError::from)));
            }
            Ask::GiveBack { slots, clean, answer } => {
                drop(answer.send(self.give_back(node, &slots, clean).map_err(StoreError::from)));
            }
            Ask::Leave { answer } => drop(answer.send(self.leave(node).map_err(StoreError::from))),
            Ask::News { answer } => {
                let news = self.cursors.read(&self.reader, node, now());
                drop(answer.send(news.map_err(StoreError::from)));
            }
            Ask::Run(run) => run(&self.reader),
            Ask::Announce => (self.to_tell, self.wrote_at) = (true, Some(now())),
        }
    }

    /// What is to be done from time to time.
    fn tend(&mut self, node: &Node) -> Result<(), Failure> {
        let now = now();
        let since = |at: Instant| now.saturating_duration_since(at);
        if self.to_tell && self.told_at.is_none_or(|at| since(at) >= HINTS) {
            (self.to_tell, self.told_at) = (false, Some(now));
            node.announced();
            if self.others != Others::None {
                self.link().ask(sql::ANNOUNCE, typed(params![&number(node.me).to_string()]))?;
            }
        }
        if self.others != Others::None
            && since(self.counted_at) >= COUNT.max(node.rest())
            && !node.is_counting()
        {
            self.counted_at = now;
            if self.others == Others::Gone {
                self.others = Others::None;
            }
            self.count(node);
        }
        if since(self.swept_at) >= SWEEP {
            self.swept_at = now;
            self.sweep(node)?;
        }
        Ok(())
    }

    /// Has what the others have counted read by whoever reads: that may take a while.
    fn count(&self, node: &Node) {
        let seat = node.seat;
        let look = Box::new(move |reader: &Reader| {
            let begun = now();
            match other_counts(&reader.source, seat) {
                Ok(others) => reader.shared.others(&others),
                Err(fault) => tracing::debug!(?fault, "what others have counted was not read"),
            }
            let Some(node) = &reader.shared.node else { return };
            node.counted((begun.elapsed() * 9).min(COUNT_AT_LEAST));
        });
        if self.reader.shared.looks.push(look).is_err() {
            node.counted(Duration::ZERO);
        }
    }

    /// Old bulletins go, and nodes that are gone for good.
    fn sweep(&mut self, node: &Node) -> Result<(), Failure> {
        if let Some(wrote_at) = self.wrote_at {
            if wrote_at.elapsed() > KEPT + SWEEP {
                self.wrote_at = None;
            }
            let kept = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
            let gone = typed(params![i64::from(node.seat.get()), kept]);
            self.link().ask(sql::FORGET_BULLETINS, gone)?;
        }
        if self.others == Others::Forgotten {
            self.transact(vec![
                Asked { sql: sql::WAIT_BRIEFLY, values: Vec::new() },
                Asked { sql: sql::DROP_NODES, values: typed(params![FORGOTTEN.get()]) },
            ])?;
        }
        Ok(())
    }

    fn renew(&mut self, node: &Node, leaving: bool) -> Result<Renewed, StoreError> {
        let me = number(node.me);
        let answers = self.link().send(&[
            Asked { sql: sql::RENEW_LEASE, values: typed(params![me, LEASE.get(), leaving]) },
            Asked { sql: sql::ROLL_NODES, values: Vec::new() },
            Asked { sql: sql::ROLL_SLOTS, values: Vec::new() },
        ])?;
        let [renewed, nodes, slots] = &answers[..] else { return Err(StoreError::Closed) };
        if renewed.changed == 0 {
            self.reader.shared.break_down(GONE);
            return Err(StoreError::Broken(GONE.to_owned()));
        }
        let nodes: Vec<NodeRow> = nodes.rows.iter().map(node_row).collect();
        node.set_members(nodes.iter().filter(|row| row.lease_left > Millis::ZERO).count());
        let member =
            |row: &NodeRow| Member { node: row.no, lease_left: row.lease_left, leaving: row.leaving };
        let roll = Roll { members: nodes.iter().map(member).collect(), slots: held(&slots.rows) };
        self.others = match (nodes.iter().map(|row| row.lease_left).min(), self.others) {
            (Some(least), _) if least <= Millis::ZERO - FORGOTTEN => Others::Forgotten,
            _ if nodes.len() > 1 => Others::There,
            (_, Others::There | Others::Forgotten | Others::Gone) => Others::Gone,
            (_, Others::None) => Others::None,
        };
        Ok(Renewed { roll, nodes })
    }

    fn claim(&self, node: &Node, slots: &[Slot]) -> Result<Vec<Granted>, Failure> {
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let of = || by_node(node, slots);
        let answers = self.transact(vec![
            Asked { sql: sql::BEGIN_CLAIM, values: Vec::new() },
            Asked { sql: sql::LOCK_OWNERS, values: of() },
            Asked { sql: sql::LOCK_OWNERS_SEATS, values: of() },
            Asked { sql: sql::CLAIM_SLOTS, values: of() },
        ])?;
        let granted: Vec<Granted> = answers[3].rows.iter().filter_map(granted).collect();
        node.hold(&granted);
        Ok(granted)
    }

    fn give_back(&self, node: &Node, slots: &[Slot], clean: bool) -> Result<(), Failure> {
        let values = by_node(node, slots).into_iter().chain(typed(params![clean])).collect();
        self.transact(vec![
            Asked { sql: sql::WAIT_BRIEFLY, values: Vec::new() },
            lock_seat(node),
            Asked { sql: sql::GIVE_BACK_SLOTS, values },
        ])?;
        // Who is to have them need not wait for its next look.
        self.link().ask(sql::ANNOUNCE, typed(params![FREED]))?;
        Ok(())
    }

    fn leave(&self, node: &Node) -> Result<(), Failure> {
        let me = number(node.me);
        self.transact(vec![
            Asked { sql: sql::WAIT_BRIEFLY, values: Vec::new() },
            // The lease, the seat, the slots: the order in which a claim takes them.
            Asked { sql: sql::LEAVE_NODE, values: typed(params![me]) },
            Asked { sql: sql::LEAVE_SLOTS, values: typed(params![me, node.is_clean()]) },
        ])?;
        node.set_left();
        Ok(())
    }

    /// All of it or nothing, in one bundle. Where a statement fails, the commit behind it rolls back.
    fn transact(&self, asked: Vec<Asked<'_>>) -> Result<Vec<Answer>, Failure> {
        let plain = |sql| Asked { sql, values: Vec::new() };
        let all: Vec<_> = [plain("begin")].into_iter().chain(asked).chain([plain("commit")]).collect();
        let mut answers = self.link().send(&all)?;
        answers.remove(0);
        answers.pop();
        Ok(answers)
    }
}

fn lock_seat(node: &Node) -> Asked<'static> {
    let values = typed(params![i64::from(node.seat.get()), number(node.me)]);
    Asked { sql: sql::LOCK_SEAT, values }
}

/// The values of a statement about a node and slots.
fn by_node(node: &Node, slots: &[Slot]) -> Vec<Param<'static>> {
    let mut rows = Rows::of("i");
    slots.iter().for_each(|slot| rows.push(row![i64::from(slot.get())]));
    typed(params![number(node.me)]).into_iter().chain(rows.values()).collect()
}

/// A node's number as columns hold it.
pub(super) fn number(node: NodeNo) -> i64 {
    codec::count(node.0)
}

fn node_row(row: &Row) -> NodeRow {
    NodeRow {
        no: NodeNo(codec::uncount(row.get(0))),
        seat: seat(row.get(1)),
        identity: Identity { name: row.get(2), address: row.get(3), version: row.get(4) },
        started_at: Timestamp::from_millis(row.get(5)),
        lease_left: Millis::new(row.get(6)),
        leaving: row.get(7),
    }
}

/// A seat from its column.
pub(super) fn seat(column: i16) -> Seat {
    let seat = u8::try_from(column).ok().and_then(Seat::new);
    seat.expect("the schema has no others")
}

fn held(rows: &[Row]) -> Vec<Held> {
    let mut slots = vec![Held { by: None, epoch: Epoch(0) }; usize::from(SLOTS)];
    for (slot, row) in slots.iter_mut().zip(rows) {
        let by = row.get::<_, Option<i64>>(1).map(|owner| NodeNo(codec::uncount(owner)));
        *slot = Held { by, epoch: Epoch(codec::uncount(row.get(2))) };
    }
    slots
}

fn granted(row: &Row) -> Option<Granted> {
    let slot = Slot::new(u8::try_from(row.get::<_, i16>(0)).ok()?);
    let last_stop = if row.get(2) { LastStop::Clean } else { LastStop::Crash };
    Some(Granted { slot, epoch: Epoch(codec::uncount(row.get(1))), last_stop })
}
