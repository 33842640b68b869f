//! The breaker, as far as answers tell: so many failures in a row, of two deliveries at least, open it.
//!
//! It may have been opened before, by what no receiver saw (a connection that failed) or by the share of failures. So what
//! counts began after the last success, which is when it closed at the latest; and it is open for its time from the last
//! request on that began, which is when it was not yet open.

use super::Shut;
use crate::run::{Ending, MILLI, Receipt, Run, SECOND};

/// What an answer says about the destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bearing {
    Success,
    Failure,
    /// It concerns the event, or nobody can tell.
    Neutral,
}

pub(super) struct Breaker<'a> {
    run: &'a Run,
    place: u32,
    /// Failures in a row while it is closed.
    failures: Vec<&'a Receipt>,
    /// The last success: what began before does not count.
    well_at: u64,
    /// The last request began then.
    begun_at: u64,
    shut: Option<Shut<'a>>,
    trips: u32,
    successes: u32,
    /// When successes were answered, in order.
    well: Vec<u64>,
}

impl<'a> Breaker<'a> {
    pub(super) fn new(run: &'a Run, place: u32) -> Self {
        let mut well: Vec<u64> =
            run.requests_at(place).filter(|receipt| receipt.succeeded()).map(|receipt| receipt.end).collect();
        well.sort_unstable();
        let (failures, shut) = (Vec::new(), None);
        Self { run, place, failures, well_at: 0, begun_at: 0, shut, trips: 0, successes: 0, well }
    }

    /// While it is open, or half open.
    pub(super) fn open(&mut self) -> &mut Option<Shut<'a>> {
        &mut self.shut
    }

    pub(super) const fn begins(&mut self, receipt: &Receipt) {
        self.begun_at = receipt.t;
    }

    pub(super) fn ends(&mut self, receipt: &'a Receipt) {
        let (run, place) = (self.run, self.place);
        let Some(policy) = run.destinations[place as usize].timeline.constant() else { return };
        let policy = policy.circuit_breaker;
        if !policy.enabled {
            return;
        }
        let bearing = bearing(run, receipt);
        // Asked before this answer counts itself.
        let counts = receipt.t >= self.well_at.saturating_add(run.late());
        if bearing == Bearing::Success {
            self.well_at = receipt.end;
        }
        if let Some(shut) = &mut self.shut {
            if !shut.is_probe(receipt) {
                return;
            }
            shut.probe = None;
            match bearing {
                Bearing::Neutral => {}
                Bearing::Failure => self.trip(receipt.end, receipt.end),
                Bearing::Success => {
                    self.successes += 1;
                    if self.successes >= policy.successes_to_close {
                        (self.shut, self.trips) = (None, 0);
                    }
                }
            }
            return;
        }
        match bearing {
            Bearing::Success => self.failures.clear(),
            Bearing::Failure if counts => self.failures.push(receipt),
            Bearing::Failure | Bearing::Neutral => {}
        }
        self.judge_run(policy.consecutive_failures);
    }

    fn judge_run(&mut self, wanted: u32) {
        let (Some(first), Some(last)) = (self.failures.first(), self.failures.last()) else { return };
        let (first, last) = (*first, *last);
        if self.failures.len() < wanted as usize
            || self.failures.iter().all(|one| one.delivery == last.delivery)
        {
            return;
        }
        let late = self.run.late();
        let (from, to) = (first.end.saturating_sub(late), last.end.saturating_add(late));
        // Answers of nearly the same moment may have come to the sender in another order.
        let well = self.well.partition_point(|at| *at < from);
        let disturbed = self.well.get(well).is_some_and(|at| *at <= to)
            || self.run.faults.is_hit(first.t, last.end)
            || self.run.faults.clock_was_set(first.t, last.end);
        if disturbed {
            self.failures.remove(0);
        } else {
            self.trips = 0;
            self.trip(last.end, self.begun_at.saturating_sub(late));
        }
    }

    /// It opens, as was learned at `learned`, at `from` or later.
    fn trip(&mut self, learned: u64, from: u64) {
        let Some(policy) = self.run.destinations[self.place as usize].timeline.constant() else { return };
        let policy = policy.circuit_breaker;
        let doubled = policy.open_seconds * f64::from(1_u32 << self.trips.min(20));
        let open = doubled.min(policy.max_open_seconds) * SECOND as f64;
        self.trips += 1;
        self.successes = 0;
        self.failures.clear();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a day at most")]
        let open = open.max(0.0) as u64;
        self.shut = Some(Shut::new(learned, from.saturating_add(open)));
    }
}

fn bearing(run: &Run, receipt: &Receipt) -> Bearing {
    match (receipt.ending, receipt.status) {
        (Ending::Answered, 200..=299) => Bearing::Success,
        (Ending::Answered, 401 | 403 | 404 | 407) => Bearing::Failure,
        (Ending::Answered, 400..=499) => Bearing::Neutral,
        (Ending::Answered, _) => Bearing::Failure,
        // Cut off because its event went stale, it says nothing about the destination.
        _ if was_stale(run, receipt) => Bearing::Neutral,
        _ => Bearing::Failure,
    }
}

fn was_stale(run: &Run, receipt: &Receipt) -> bool {
    let Some((expiry, began)) = run.expiry(receipt).zip(receipt.wall_ms) else { return false };
    let took = i64::try_from((receipt.end - receipt.t) / MILLI).unwrap_or(i64::MAX);
    run.walls(receipt.t, began).into_iter().any(|wall| wall.saturating_add(took) + 1_000 >= expiry)
}
