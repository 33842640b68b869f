//! A record that is refused as a whole, in parts: by halves until what cannot be stored is alone.
//!
//! What belongs to one destination stays together as long as there are others, so that its results and its lane's state still
//! are one commit. A crash between two parts is one before the record's commit: nobody has been told of that.

use std::collections::BTreeSet;

use crate::DestinationNo;
use crate::delivery::StoredAttempt;
use crate::record::Record;

/// What can be tried next.
pub(super) enum Split {
    /// These, one after the other.
    Parts(Box<Record>, Box<Record>),
    /// The one result in it, without the attempt that led to it: that a delivery ended must be known, or it is sent again.
    WithoutAttempt(Box<Record>, Box<StoredAttempt>),
    /// Nothing: it is one row, if any. The record's ticket, and what the row is.
    Row(u64, Option<String>),
}

/// Splits a record that was refused.
pub(super) fn split(mut record: Record) -> Split {
    let destinations: BTreeSet<DestinationNo> = destinations(&record).collect();
    if let Some(middle) = destinations.iter().nth(destinations.len() / 2).filter(|_| destinations.len() > 1) {
        let second = take(&mut record, |destination| destination >= *middle);
        return Split::Parts(Box::new(record), Box::new(second));
    }
    let mut left = rows(&record) / 2;
    if left > 0 {
        // In this order: what is said last, that an order is carried out and who asked for what, is true then.
        let first = Record {
            now: record.now,
            ticket: record.ticket,
            settled: front(&mut record.settled, &mut left),
            lanes: front(&mut record.lanes, &mut left),
            holds: front(&mut record.holds, &mut left),
            notices: front(&mut record.notices, &mut left),
            orders: front(&mut record.orders, &mut left),
            audit: front(&mut record.audit, &mut left),
            awaited: record.awaited,
        };
        return Split::Parts(Box::new(first), Box::new(record));
    }
    match record.settled.first_mut().and_then(|settled| settled.attempt.take()) {
        Some(attempt) => Split::WithoutAttempt(Box::new(record), Box::new(attempt)),
        None => Split::Row(record.ticket, row(&record)),
    }
}

fn destinations(record: &Record) -> impl Iterator<Item = DestinationNo> {
    let settled = record.settled.iter().map(|row| row.destination);
    let lanes = record.lanes.iter().map(|row| row.destination);
    let holds = record.holds.iter().map(|row| row.destination);
    let notices = record.notices.iter().map(|row| row.destination);
    let orders = record.orders.iter().map(|row| row.destination);
    settled.chain(lanes).chain(holds).chain(notices).chain(orders)
}

fn rows(record: &Record) -> usize {
    destinations(record).count() + record.audit.len()
}

/// Moves what is of such destinations out of a record, and what is to be said when all of it is in.
fn take(record: &mut Record, such: impl Fn(DestinationNo) -> bool) -> Record {
    Record {
        now: record.now,
        ticket: record.ticket,
        settled: record.settled.extract_if(.., |row| such(row.destination)).collect(),
        lanes: record.lanes.extract_if(.., |row| such(row.destination)).collect(),
        holds: record.holds.extract_if(.., |row| such(row.destination)).collect(),
        notices: record.notices.extract_if(.., |row| such(row.destination)).collect(),
        orders: record.orders.extract_if(.., |row| such(row.destination)).collect(),
        audit: std::mem::take(&mut record.audit),
        awaited: record.awaited,
    }
}

/// Moves up to so many rows out of a record.
fn front<T>(rows: &mut Vec<T>, left: &mut usize) -> Vec<T> {
    let count = rows.len().min(*left);
    *left -= count;
    rows.drain(..count).collect()
}

/// What the one row of a record is, for the log: which, and never what is in it.
fn row(record: &Record) -> Option<String> {
    let settled = record.settled.first().map(|row| {
        let (delivery, status) = (row.delivery.id, row.delivery.status.word());
        format!("{delivery} of destination {}, which is {status} now", row.destination.0)
    });
    let lane = || record.lanes.first().map(|row| format!("the state of destination {}", row.destination.0));
    let hold = || record.holds.first().map(|row| format!("a hold of destination {}", row.destination.0));
    let notice = || {
        let row = record.notices.first()?;
        Some(format!("the notice {} of destination {}", row.kind, row.destination.0))
    };
    let order = || record.orders.first().map(|row| format!("the end of order {}", row.no.0));
    let line = || record.audit.first().map(|row| format!("the audit line {} of {}", row.action, row.subject));
    settled.or_else(lane).or_else(hold).or_else(notice).or_else(order).or_else(line)
}
