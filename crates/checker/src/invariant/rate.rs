//! I5: in any time of length T at most `burst + rate · (T + J)` requests begin at a destination, across restarts and nodes,
//! and across changes of its limit.
//!
//! For every pair `i ≤ j`: `j - i + 1 ≤ burst(tᵢ) + gained(tⱼ) - gained(tᵢ - J)`, where `gained` is the rate added up over
//! time: a bucket holds no more than its burst when a time begins, and a change of the limit adds nothing to it. With the
//! parts of `i` on one side, that is one comparison for each request, with the least of `i` so far. Whole numbers throughout.
//!
//! A start is not an arrival: on a busy machine requests wait between the two, and J, which has room for that, hides a small
//! breach. So the starts that the API tells are held against the bound as well, and with no J: some of all starts, since
//! those that died with a process are not told, must keep to it, too.

mod allowance;

use crate::run::{MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;
use allowance::{Allowance, TOKEN, Worst};

/// A start that is told to lie further from its arrival is not believed.
const BELIEVED: i128 = 2 * SECOND as i128;
/// Starts are told in whole milliseconds, and so is the distance between the two clocks.
const ROUNDED: u64 = 2 * MILLI;
/// Over a restart both clocks of the server are rounded once more, before and after.
const ROUNDED_BY_RESTART: i128 = 2 * MILLI as i128;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I5", "rate");
    let breaks = run.faults.unseen_steps();
    let mut starts = 0;
    for (place, destination) in run.places() {
        let allowance = Allowance::of(&destination.timeline);
        let mut part: Vec<&Receipt> = Vec::new();
        let mut flush = |part: &mut Vec<&Receipt>, verdict: &mut Verdict| {
            starts += judge_part(run, &allowance, part, verdict);
            part.clear();
        };
        for receipt in run.requests_at(place) {
            let since = part.last().map_or(receipt.t, |last| last.t);
            let stepped = breaks.iter().any(|at| (since..=receipt.t).contains(at)) && !part.is_empty();
            if stepped || !allowance.is_limited(since.saturating_sub(run.jitter), receipt.t) {
                flush(&mut part, &mut verdict);
            }
            if allowance.is_limited(receipt.t.saturating_sub(run.jitter), receipt.t) {
                part.push(receipt);
            }
        }
        flush(&mut part, &mut verdict);
    }
    verdict.notes.push(format!("J = {} ms", run.jitter / MILLI));
    verdict.note(starts, "also by when the API says that they began");
    verdict
}

/// When a request began, and what rounding may have moved it by until then.
struct Start<'a> {
    at: u64,
    rounded: i128,
    receipt: &'a Receipt,
}

/// Judges a stretch with a limit all the time; returns how many starts the API tells.
fn judge_part(run: &Run, allowance: &Allowance, part: &[&Receipt], verdict: &mut Verdict) -> u64 {
    verdict.checked += part.len() as u64;
    let arrival = |receipt: &&'_ Receipt| (receipt.t, 0);
    let arrivals: Vec<(u64, i128)> = part.iter().map(arrival).collect();
    let starts = starts(run, part);
    let told: Vec<(u64, i128)> = starts.iter().map(|start| (start.at, start.rounded)).collect();
    let came =
        allowance.worst(&arrivals, run.jitter).map(|worst| ("came", part[worst.from], part[worst.to], worst));
    let began = || {
        let worst = allowance.worst(&told, ROUNDED)?;
        Some(("began", starts[worst.from].receipt, starts[worst.to].receipt, worst))
    };
    if let Some((what, first, last, worst)) = came.or_else(began) {
        verdict.wrong(|| {
            let Worst { from, to, burst, gained, over } = worst;
            let (count, first, last) = (to - from + 1, run.show(first), run.at(last.t));
            let [gained, over] = [gained, over].map(|tokens| tokens as f64 / TOKEN as f64);
            format!(
                "{first} to {last}: {count} {what}, {over:.3} more than {burst} at once and {gained:.3} gained meanwhile"
            )
        });
    }
    told.len() as u64
}

/// When they began, in order, as far as the API tells. Where time is virtual, requests come when they begin.
fn starts<'a>(run: &Run, part: &[&'a Receipt]) -> Vec<Start<'a>> {
    let Some(offset) = run.mono_to_wall_ms.filter(|_| !run.is_virtual() && run.faults.clocks_are_true())
    else {
        return Vec::new();
    };
    let start = |receipt: &&'a Receipt| {
        let later = |other: &Receipt| other.attempt == receipt.attempt && other.t > receipt.t;
        let told = run.attempt(receipt.delivery, receipt.attempt)?.started_at?;
        let at = u64::try_from(told - offset).ok()?.saturating_mul(MILLI);
        let believed = (i128::from(receipt.t) - i128::from(at)).abs() <= BELIEVED;
        let restarts = run.faults.outages.partition_point(|outage| outage.from <= at);
        let stored = !run.requests_of(receipt.delivery).any(later);
        let rounded = ROUNDED_BY_RESTART * restarts as i128;
        (believed && stored).then_some(Start { at, rounded, receipt })
    };
    let mut all: Vec<Start<'a>> = part.iter().filter_map(start).collect();
    all.sort_by_key(|start| start.at);
    all
}
