//! The writer on PostgreSQL: a group is two bundles of statements, each sent at once.
//!
//! ```text
//!   before   names, plans and partitions that are new (seldom)
//!   first    begin, the seat's row, stale slots, known keys and ids, replayed events, settle, promote
//!   between  which request is accepted, what is counted; changes of the catalogue, edit by edit (seldom)
//!   second   events, deliveries, attempts, keys, lanes, counts, jobs, logs, commit
//! ```
//!
//! A connection that is lost in the first bundle has committed nothing: the group is tried once more. Lost in the second,
//! nobody knows: the seat's row says on the next connection which of its groups was the last.

mod accept;
mod bulletin;
mod catalogue;
mod record;
mod rest;
mod results;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use super::intern::Intern;
use super::link::{Answer, Asked, Link, Param};
use super::partitions::Partitions;
use super::slots::Slots;
use super::sql;
use super::value::{Rows, typed};
use crate::cluster::{Node, OrderNo};
use crate::codec;
use crate::counts::Counts;
use crate::record::Commit;
use crate::shared::Shared;
use crate::source::params;
use crate::work::{Done, Work};
use crate::writer::{self, Engine, change};

/// Times that a group is tried when others are in its way, or its connection turns out to be lost.
const TRIES: u32 = 4;

/// What the thread starts from.
pub(super) struct Start {
    pub(super) link: Link,
    pub(super) shared: Arc<Shared>,
    pub(super) counts: Counts,
    pub(super) slots: Slots,
    pub(super) groups: i64,
    pub(super) partitions: Partitions,
    pub(super) on_commit: Box<dyn Fn(Commit) + Send>,
}

/// Runs until the store is closed or let go of.
pub(super) fn run(start: Start) {
    let Start { link, shared, counts, slots, groups, partitions, on_commit } = start;
    let own = Arc::clone(&shared);
    let intern = Intern::default();
    let (told, ordered, in_doubt) = (false, Vec::new(), false);
    let engine =
        Writer { link, shared: own, counts, slots, partitions, intern, groups, in_doubt, told, ordered };
    writer::run(&shared, engine, &*on_commit);
}

/// For each node: several times what a group takes.
const APART: Duration = Duration::from_millis(12);
/// Whoever waits for a commit waits no longer than this for others to come.
const APART_AT_MOST: Duration = Duration::from_millis(50);

struct Writer {
    link: Link,
    shared: Arc<Shared>,
    counts: Counts,
    slots: Slots,
    partitions: Partitions,
    intern: Intern,
    /// Groups that were committed from this node's seat.
    groups: i64,
    /// Nobody knows whether the last one was.
    in_doubt: bool,
    /// The group has something for other nodes; and the orders among that.
    told: bool,
    ordered: Vec<OrderNo>,
}

/// Why a group is not committed.
enum Stopped {
    /// Nothing of it is.
    Failed(Failure),
    /// The answer to the commit was lost.
    InDoubt(String, Vec<Done>),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Engine for Writer {
    /// Several nodes together write no more groups than one would: what each has to write is less.
    fn apart(&self) -> Duration {
        let nodes = self.shared.node.as_ref().map_or(1, Node::members);
        if nodes > 1 { (APART * nodes).min(APART_AT_MOST) } else { Duration::ZERO }
    }

    fn transact(&mut self, group: &mut [Work]) -> Result<Vec<Done>, writer::Failure> {
        for left in (0..TRIES).rev() {
            match self.try_group(group) {
                Ok(done) => {
                    self.link.ended();
                    return Ok(done);
                }
                Err(Stopped::InDoubt(text, done)) => {
                    self.link.cut();
                    self.in_doubt = true;
                    return Err(writer::Failure::Unknown(text, done));
                }
                Err(Stopped::Failed(failure)) => {
                    // A transaction that was begun ends with its connection.
                    self.link.cut();
                    self.counts.roll_back();
                    let again = matches!(failure, Failure::Again(_) | Failure::Lost(_) | Failure::Taken(_));
                    if !again || left == 0 {
                        return Err(failure.into());
                    }
                }
            }
        }
        Err(writer::Failure::Unavailable("others were in the way each time".to_owned()))
    }

    fn committed(&mut self, _: &Commit) {
        self.groups += 1;
        self.counts.commit(&self.shared);
        if let Some(node) = self.shared.node.as_ref().filter(|_| std::mem::take(&mut self.told)) {
            node.posted(&std::mem::take(&mut self.ordered));
            node.announce();
        }
    }

    fn roll_back(&mut self) {
        self.counts.roll_back();
    }

    /// The seat's row is locked by a group until that ends, so what is read is the last word.
    fn recover(&mut self) -> Result<bool, writer::Failure> {
        let found = self.link.ask(sql::LOCK_SEAT, typed(params![self.slots.seat, self.slots.node]))?;
        let last: i64 = found.rows.first().map(|row| row.get(0)).ok_or(Failure::Gone)?;
        Ok(std::mem::take(&mut self.in_doubt) && last == self.groups + 1)
    }

    fn has_room(&self) -> bool {
        true
    }

    fn writes_empty_groups(&self) -> bool {
        true
    }

    fn tidy(&mut self, _: bool) {}

    /// The slots are given back when the node leaves: their next owner knows then that nothing was in flight.
    fn close(&mut self) {
        self.shared.node.iter().for_each(Node::ended_clean);
    }
}

/// Statements that go out together.
#[derive(Default)]
struct Bundle<'a> {
    asked: Vec<Asked<'a>>,
}

impl<'a> Bundle<'a> {
    /// Adds a statement; says where its answer will be.
    fn add(&mut self, sql: &'static str, values: Vec<Param<'a>>) -> usize {
        self.asked.push(Asked { sql, values });
        self.asked.len() - 1
    }

    /// Adds a statement for many rows, if there are any.
    fn add_rows(&mut self, sql: &'static str, rows: Rows<'a>) -> Option<usize> {
        (!rows.is_empty()).then(|| self.add(sql, rows.values()))
    }

    /// The same for a statement whose first value is the node, or its seat.
    fn add_fenced(&mut self, sql: &'static str, node: i64, rows: Rows<'a>) -> Option<usize> {
        (!rows.is_empty()).then(|| {
            let values = typed(params![node]).into_iter().chain(rows.values());
            self.add(sql, values.collect())
        })
    }

    fn send(&self, link: &Link) -> Result<Vec<Answer>, Failure> {
        link.send(&self.asked)
    }
}

impl Writer {
    fn try_group(&mut self, group: &mut [Work]) -> Result<Vec<Done>, Stopped> {
        self.prepare(group)?;
        self.slots.look();
        let settled = record::Settling::of(group, &self.slots);
        let mut first = Bundle::default();
        first.add("begin", Vec::new());
        let numbers = params![self.slots.seat, self.slots.node, newest(group), self.groups + 1];
        let begun = first.add(sql::BEGIN_GROUP, typed(numbers));
        let stale = first.add_fenced(sql::STALE_SLOTS, self.slots.node, settled.slots(&self.slots));
        let looked_up = accept::LookedUp::ask(&mut first, group, &self.intern)?;
        let ended = first.add_fenced(sql::SETTLE_FINAL, self.slots.node, settled.finals());
        let moved = first.add_fenced(sql::SETTLE_OPEN, self.slots.node, settled.opens());
        let promoted = rest::promote(&mut first, group);
        let posted = rest::post_orders(&mut first, group);
        let strange = first.add_fenced(sql::STRANGE_JOBS, self.slots.node, rest::jobs_worked_at(group));
        let answers = first.send(&self.link)?;
        self.link.begun();
        drop(first);
        if answers[begun].rows.is_empty() {
            return Err(Failure::Gone.into());
        }

        let stale: BTreeSet<u8> =
            rows(&answers, stale).filter_map(|row| u8::try_from(row.get::<_, i64>(0)).ok()).collect();
        let outcome = self.settle(&settled, rows(&answers, ended), rows(&answers, moved))?;
        drop(settled);
        let mut known = looked_up.read(&answers);
        let strange: BTreeSet<Vec<u8>> = rows(&answers, strange).map(|row| row.get(0)).collect();
        let mut done = Vec::with_capacity(group.len());
        for (place, work) in group.iter_mut().enumerate() {
            done.push(match work {
                Work::Accept(accepting) => Done::Accepted(known.accept(accepting, &self.intern)?),
                Work::Replays { job: Some(job), .. } | Work::PutJob { job, .. }
                    if strange.contains(&codec::bits(job.id)[..]) =>
                {
                    Done::Lost
                }
                Work::Replays { replays, .. } => Done::Replayed(known.replayed(replays)),
                Work::Record { record, .. } => {
                    Done::Stale(record::stale_results(record, &stale, &self.slots))
                }
                Work::PutJob { .. } | Work::Close(_) | Work::Forget(_) => Done::Nothing,
                Work::Change { change, .. } => Done::Changed(change::change(self, change)?),
                Work::Promote { .. } => Done::Counted(promoted.changed(&answers, place)),
                Work::PostOrder { .. } => posted.order(&answers, place)?,
            });
        }
        let done = self.finish(group, done, &known, &outcome, &stale)?;
        self.slots.lose(&stale);
        Ok(done)
    }

    /// Gives numbers to what is new before the transaction: names, plans, partitions.
    fn prepare(&mut self, group: &[Work]) -> Result<(), Failure> {
        let deliveries = || group.iter().flat_map(accept::new_deliveries);
        let types = group.iter().flat_map(accept::new_types);
        self.intern.learn(&self.link, types, deliveries().map(|delivery| delivery.plan.to_text()))?;
        let events = group.iter().flat_map(accept::new_events);
        let events = events.map(|event| codec::seq(event.message.id.sequence()));
        let numbers = events.chain(deliveries().map(|delivery| codec::seq(delivery.id.sequence())));
        self.partitions.prepare(&self.link, numbers)
    }
}

fn rows(answers: &[Answer], place: Option<usize>) -> impl Iterator<Item = &tokio_postgres::Row> {
    place.and_then(|place| answers.get(place)).into_iter().flat_map(|answer| &answer.rows)
}

/// The highest number that the group gives.
fn newest(group: &[Work]) -> i64 {
    let accepted = group.iter().flat_map(accept::new_events).map(|event| event.message.id.sequence());
    let deliveries = group.iter().flat_map(accept::new_deliveries).map(|delivery| delivery.id.sequence());
    let attempts = group.iter().flat_map(record::attempts).map(|attempt| attempt.id.sequence());
    accepted.chain(deliveries).chain(attempts).max().map_or(0, codec::seq)
}
