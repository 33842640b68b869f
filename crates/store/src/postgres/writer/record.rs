//! Results: all of a group are settled by two statements, under the epochs of their slots.
//!
//! A delivery may have several results in one group. Its first end counts; before one, its last state. Attempts that were
//! made are written down in any case.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tidegate_core::delivery::Status;
use tidegate_core::time::Timestamp;
use tokio_postgres::Row;

use super::{Writer, accept};
use crate::codec;
use crate::delivery::StoredAttempt;
use crate::postgres::failure::Failure;
use crate::postgres::slots::{Slots, slot};
use crate::postgres::sql;
use crate::postgres::value::{Rows, row};
use crate::record::{Record, Settled};
use crate::work::Work;

/// The records of a group.
pub(super) fn records(group: &[Work]) -> impl Iterator<Item = &Record> {
    group.iter().filter_map(|work| if let Work::Record { record, .. } = work { Some(record) } else { None })
}

/// The attempts in a thing.
pub(super) fn attempts(work: &Work) -> impl Iterator<Item = &StoredAttempt> {
    let settled = if let Work::Record { record, .. } = work { &record.settled[..] } else { &[] };
    settled.iter().filter_map(|settled| settled.attempt.as_ref())
}

/// How many results in a record belong to another node by now.
pub(super) fn stale_results(record: &Record, stale: &BTreeSet<u8>, slots: &Slots) -> usize {
    let is_stale = |settled: &&Settled| {
        stale.contains(&slot(settled.destination)) || !slots.is_current(settled.destination, settled.epoch)
    };
    record.settled.iter().filter(is_stale).count()
}

/// What the results of a group come to, by the numbers of their deliveries.
pub(super) struct Settling<'a> {
    finals: BTreeMap<i64, (&'a Settled, Timestamp)>,
    opens: BTreeMap<i64, &'a Settled>,
    /// Deliveries for which an attempt was made.
    tried: BTreeSet<i64>,
    owned: HashMap<i64, (i64, i64)>,
    touched: BTreeSet<u8>,
}

/// What became of them.
pub(super) struct Outcome {
    /// Deliveries that are there: an attempt for another is not written down.
    pub(super) there: HashSet<i64>,
}

impl<'a> Settling<'a> {
    pub(super) fn of(group: &'a [Work], slots: &Slots) -> Self {
        let (mut finals, mut opens) = (BTreeMap::new(), BTreeMap::new());
        let (mut tried, mut owned, mut touched) = (BTreeSet::new(), HashMap::new(), BTreeSet::new());
        // What is accepted for a slot that somebody else has taken meanwhile must be told there.
        let accepted = group.iter().flat_map(accept::new_destinations);
        touched.extend(accepted.filter(|destination| !slots.is_foreign(*destination)).map(slot));
        for record in records(group) {
            touched.extend(record.lanes.iter().map(|lane| slot(lane.destination)));
            touched.extend(record.orders.iter().map(|order| slot(order.destination)));
            let current = |settled: &&Settled| slots.is_current(settled.destination, settled.epoch);
            for settled in record.settled.iter().filter(current) {
                let seq = codec::seq(settled.delivery.id.sequence());
                touched.insert(slot(settled.destination));
                owned.insert(seq, slots.of(settled.destination));
                if settled.attempt.is_some() {
                    tried.insert(seq);
                }
                match settled.delivery.status {
                    _ if finals.contains_key(&seq) => {}
                    Status::Final(_) => {
                        opens.remove(&seq);
                        finals.insert(seq, (settled, record.now));
                    }
                    _ => {
                        opens.insert(seq, settled);
                    }
                }
            }
        }
        Self { finals, opens, tried, owned, touched }
    }

    /// The slots of everything that is recorded or accepted, with this node's epochs.
    pub(super) fn slots(&self, slots: &Slots) -> Rows<'static> {
        let mut found = Rows::of("ii");
        for slot in &self.touched {
            let (slot, epoch) = slots.of(crate::DestinationNo(u32::from(*slot)));
            found.push(row![slot, epoch]);
        }
        found
    }

    pub(super) fn finals(&self) -> Rows<'static> {
        let mut found = Rows::of("iiiiiiti");
        for (seq, (settled, now)) in &self.finals {
            let delivery = &settled.delivery;
            let (slot, epoch) = self.owned[seq];
            let columns = codec::status_columns(&delivery.status);
            let (made, used) = (delivery.attempts_made, delivery.attempts_used);
            let end = columns.end_code;
            found.push(row![*seq, slot, epoch, made, used, columns.stage, end, now.as_millis()]);
        }
        found
    }

    pub(super) fn opens(&self) -> Rows<'static> {
        let mut found = Rows::of("iiiiiii");
        for (seq, settled) in &self.opens {
            let delivery = &settled.delivery;
            let (slot, epoch) = self.owned[seq];
            let columns = codec::status_columns(&delivery.status);
            let (made, used) = (delivery.attempts_made, delivery.attempts_used);
            found.push(row![*seq, slot, epoch, made, used, columns.retry_at, columns.retry_reason]);
        }
        found
    }
}

impl Writer {
    /// Counts what became final, and finds out which deliveries are there at all.
    pub(super) fn settle<'r>(
        &mut self,
        settling: &Settling<'_>,
        ended: impl Iterator<Item = &'r Row>,
        moved: impl Iterator<Item = &'r Row>,
    ) -> Result<Outcome, Failure> {
        let mut there: HashSet<i64> = moved.map(|row| row.get(0)).collect();
        for row in ended {
            let (seq, bytes): (i64, i64) = (row.get(0), row.get(1));
            there.insert(seq);
            if let Some((settled, now)) = settling.finals.get(&seq)
                && let Status::Final(end) = &settled.delivery.status
            {
                let stage = codec::stage_of(end);
                self.counts.ended(settled.destination, settled.account, stage, bytes, *now);
            }
        }
        // Those that were final before.
        let mut missing = Rows::of("i");
        settling.tried.iter().filter(|seq| !there.contains(*seq)).for_each(|seq| missing.push(row![*seq]));
        if !missing.is_empty() {
            let found = self.link.ask(sql::ARE_THERE, missing.values())?;
            there.extend(found.rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        Ok(Outcome { there })
    }
}
