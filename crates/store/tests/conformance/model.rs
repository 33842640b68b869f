//! A refill as a walk over everything that is open: slow, and plainly what is meant.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_core::delivery::{Delivery, OwnTime, Place, Status};
use tidegate_core::order::Line;
use tidegate_core::refill::{Group, Refill};
use tidegate_core::time::Timestamp;
use tidegate_store::lane::RefillQuery;

pub fn refill(open: &[Delivery], query: &RefillQuery) -> Refill {
    let waits =
        |delivery: &&Delivery| matches!(delivery.status, Status::RetryScheduled { at, .. } if at > query.now);
    let (mut timed, mut due): (Vec<&Delivery>, Vec<&Delivery>) = open.iter().partition(waits);
    timed.sort_by_key(|delivery| own_time(delivery));
    due.sort_by_key(|delivery| delivery.place);
    let ordering = query.policy.ordering;
    let (lined, free): (Vec<&Delivery>, Vec<&Delivery>) =
        due.into_iter().partition(|delivery| ordering.line(delivery).is_some());
    let mut refill = Refill::default();
    take_free(&mut refill, query, &free);
    let waiting = take_timed(&mut refill, query, &timed);
    take_lines(&mut refill, query, lined, &waiting);
    refill
}

/// Those that keep no order, in order of place.
fn take_free(refill: &mut Refill, query: &RefillQuery, free: &[&Delivery]) {
    let mut counts: HashMap<Group, usize> = HashMap::new();
    for delivery in free {
        let group = Group::of(delivery, &query.policy);
        let count = counts.entry(group).or_default();
        *count += 1;
        if *count <= query.wanted.per_shelf {
            refill.deliveries.push((*delivery).clone());
        } else if *count == query.wanted.per_shelf + 1 {
            refill.more.shelves.push(group);
        }
    }
}

/// Those that wait for their own time. Returns the lines that such a one heads, and whether all such ones were taken.
fn take_timed(refill: &mut Refill, query: &RefillQuery, timed: &[&Delivery]) -> HashMap<Line, bool> {
    let cut = timed.get(query.wanted.timed).map(|delivery| own_time(delivery).0);
    refill.more.timed_from = cut;
    let mut heads = HashMap::new();
    for delivery in timed {
        let taken = cut.is_none_or(|cut| own_time(delivery).0 < cut);
        if taken {
            refill.deliveries.push((*delivery).clone());
        }
        let retries = matches!(delivery.status, Status::RetryScheduled { reason: OwnTime::RetryBackoff, .. });
        if let Some(line) = query.policy.ordering.line(delivery).filter(|_| retries) {
            heads.insert(line, taken);
        }
    }
    heads
}

/// The first of each line that does not stand and whose head does not wait, in the order of their keys.
fn take_lines(
    refill: &mut Refill,
    query: &RefillQuery,
    lined: Vec<&Delivery>,
    waiting: &HashMap<Line, bool>,
) {
    let mut lines: BTreeMap<Line, Vec<&Delivery>> = BTreeMap::new();
    for delivery in lined {
        let line = query.policy.ordering.line(delivery).expect("it stands in one");
        lines.entry(line).or_default().push(delivery);
    }
    let after = query.after_key.clone().map(Line::Key);
    let (later, sooner): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|(line, _)| after.as_ref().is_some_and(|after| line > after));
    let mut heads: HashMap<Group, usize> = HashMap::new();
    let mut other = BTreeSet::new();
    for (line, mut deliveries) in later.into_iter().chain(sooner) {
        // One that was tried has its turn before those of an earlier place.
        deliveries.sort_by_key(|delivery| (delivery.attempts_made == 0, delivery.place));
        match waiting.get(&line) {
            Some(true) => refill.more.lines.push(line),
            Some(false) => {}
            None if query.halted.contains(&line) => {}
            None => {
                let group = Group::of(deliveries[0], &query.policy);
                let heads = heads.entry(group).or_default();
                *heads += 1;
                if *heads > query.wanted.lines {
                    other.insert(group);
                    continue;
                }
                refill.deliveries.extend(deliveries.iter().take(query.wanted.per_line).copied().cloned());
                if deliveries.len() > query.wanted.per_line {
                    refill.more.lines.push(line);
                }
            }
        }
    }
    refill.more.other_lines.extend(other);
}

fn own_time(delivery: &Delivery) -> (Timestamp, Place) {
    match delivery.status {
        Status::RetryScheduled { at, .. } => (at, delivery.place),
        _ => (Timestamp::MIN, delivery.place),
    }
}
