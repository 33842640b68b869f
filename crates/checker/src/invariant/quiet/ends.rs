//! What waited for the end of quiet hours goes then: the first of it within two seconds. Judged where a destination has no
//! other gate that could be shut then: no rate, no failure so far, nothing open, a clock that nobody ever set.

use std::collections::{BTreeMap, HashMap};

use super::Hours;
use crate::history::Policy;
use crate::invariant::waits::AT_ONCE;
use crate::names::Name;
use crate::run::{Ending, Receipt, Run};
use crate::verdict::Verdict;

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
/// No end is looked for further ahead.
const LONGEST_MS: i64 = 8 * 86_400 * SECOND_MS;

/// Judges one destination; returns how many ends of quiet hours were judged.
pub(super) fn judge(run: &Run, place: u32, verdict: &mut Verdict) -> u64 {
    let policy =
        run.destinations[place as usize].timeline.constant().filter(|policy| has_no_other_gate(policy));
    let Some(hours) = policy.filter(|_| run.faults.clocks_are_true()).and_then(Hours::of) else { return 0 };
    let mut judged = 0;
    for (at, first) in released(run, place, &hours) {
        let until = at.saturating_add(AT_ONCE);
        if !run.faults.is_calm(at, until) || is_troubled(run, place, at, until) {
            continue;
        }
        verdict.judge();
        judged += 1;
        if first.t > until.saturating_add(run.jitter) {
            verdict.wrong(|| {
                let over = run.at(at);
                format!("{} is the first that waited for the end of quiet hours, at {over}", run.show(first))
            });
        }
    }
    judged
}

fn has_no_other_gate(policy: &Policy) -> bool {
    policy.active && !policy.paused && policy.rate_limit.is_none() && !policy.delivery_schedules.is_empty()
}

/// When quiet hours ended that something waited for, and the first of that to come.
fn released<'a>(run: &'a Run, place: u32, hours: &[Hours<'_>]) -> BTreeMap<u64, &'a Receipt> {
    let mut firsts: HashMap<Name, &Receipt> = HashMap::new();
    for receipt in run.requests_at(place) {
        firsts.entry(receipt.event).or_insert(receipt);
    }
    let mut ends: HashMap<Name, (i64, i64)> = HashMap::new();
    let mut released: BTreeMap<u64, &Receipt> = BTreeMap::new();
    for accepted in run.accepted.iter().filter(|accepted| !run.sent(accepted).is_scheduled) {
        let Some(first) = firsts.get(&accepted.id).copied() else { continue };
        let Some(wall) = run.true_wall(accepted.known_at) else { continue };
        let kind = run.sent(accepted).event_type;
        let known = ends.get(&kind).filter(|(from, end)| (*from..*end).contains(&wall)).map(|(_, end)| *end);
        let Some(end) = known.or_else(|| end_of(hours, run.text(kind), wall)) else { continue };
        ends.insert(kind, (wall.min(ends.get(&kind).map_or(wall, |(from, _)| *from)), end));
        let Some(at) = run.moment_of(end).filter(|at| *at <= first.t) else { continue };
        let earliest = released.entry(at).or_insert(first);
        if first.t < earliest.t {
            *earliest = first;
        }
    }
    released
}

/// When the quiet hours that `wall` lies in are over for this type; none: it does not lie in any.
fn end_of(hours: &[Hours<'_>], event_type: &str, wall: i64) -> Option<i64> {
    let is_quiet = |wall: i64| hours.iter().any(|one| one.concerns(event_type) && one.covers(wall));
    if !is_quiet(wall) {
        return None;
    }
    let mut minute = wall.div_euclid(MINUTE_MS) * MINUTE_MS;
    while is_quiet(minute + MINUTE_MS) {
        minute += MINUTE_MS;
        if minute > wall + LONGEST_MS {
            return None;
        }
    }
    let seconds = (1..=60).map(|second| minute + second * SECOND_MS);
    seconds.filter(|at| *at > wall).find(|at| !is_quiet(*at))
}

/// Whether something failed until then, so that a retry or the breaker may hold, or was open when the hours ended. What went
/// with its sender says nothing.
fn is_troubled(run: &Run, place: u32, at: u64, until: u64) -> bool {
    let cut =
        |receipt: &Receipt| receipt.ending != Ending::Answered && run.faults.is_hit(receipt.t, receipt.end);
    let troubles =
        |receipt: &Receipt| !receipt.succeeded() && !cut(receipt) || receipt.t < at && receipt.end > at;
    run.requests_at(place).take_while(|receipt| receipt.t <= until).any(troubles)
}
