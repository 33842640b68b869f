//! I5: in any time of length T at most `burst + rate · (T + J)` requests begin at a destination, across restarts and nodes.
//!
//! For every pair `i ≤ j`: `j - i + 1 ≤ burst + rate · (tⱼ - tᵢ + J)`. With the parts of `i` on one side, that is one
//! comparison for each request, with the least `i - rate · tᵢ` so far. Whole numbers throughout.
//!
//! A start is not an arrival: on a busy machine requests may come in bunches. Where arrivals break the bound, the starts
//! that the API tells are held against it, if they are near the arrivals.

use crate::history::policy::RateLimit;
use crate::run::{MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// A token, in the unit of the sums: every period divides a day, so that a nanosecond gains a whole number.
const TOKEN: i128 = 86_400 * SECOND as i128;
/// A start that is told to lie further before its arrival is not believed.
const BELIEVED: u64 = 2 * SECOND;
/// Starts are told in whole milliseconds; each restart rounds both clocks once more.
const ROUNDED: i128 = MILLI as i128;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I5", "rate");
    let breaks = run.faults.unseen_steps();
    let mut bunched = 0;
    for (place, _) in run.places() {
        let mut part: Vec<&Receipt> = Vec::new();
        let mut limit = None;
        let mut flush = |part: &mut Vec<&Receipt>, limit: Option<RateLimit>, verdict: &mut Verdict| {
            if let Some(limit) = limit {
                bunched += u64::from(!holds(run, &limit, part, verdict));
            }
            part.clear();
        };
        for receipt in run.requests_at(place) {
            let now = sole_limit(run, place, receipt.t);
            let stepped =
                part.last().is_some_and(|last| breaks.iter().any(|at| (last.t..=receipt.t).contains(at)));
            if now != limit || stepped {
                flush(&mut part, limit, &mut verdict);
                limit = now;
            }
            part.push(receipt);
        }
        flush(&mut part, limit, &mut verdict);
    }
    verdict.note(bunched, "times that arrivals came in bunches: judged by the starts that the API tells");
    verdict
}

/// The limit that is in force for certain.
fn sole_limit(run: &Run, place: u32, t: u64) -> Option<RateLimit> {
    let mut all = run.destinations[place as usize].timeline.possible(t).map(|policy| policy.rate_limit);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Judges a stretch under one limit; says whether the arrivals alone kept to it.
fn holds(run: &Run, limit: &RateLimit, part: &[&Receipt], verdict: &mut Verdict) -> bool {
    verdict.checked += part.len() as u64;
    let arrivals: Vec<i128> = part.iter().map(|receipt| i128::from(receipt.t)).collect();
    if worst(limit, &arrivals, i128::from(run.jitter)).is_none() {
        return true;
    }
    let (order, starts) = starts(run, part);
    let restarts = run.faults.outages.len() as i128;
    let slack =
        i128::from(run.jitter).max(ROUNDED * i128::from(!run.is_virtual()) * (1 + 2 * restarts.min(50)));
    if let Some((from, to, over)) = worst(limit, &starts, slack) {
        let (first, last) = (part[order[from]], part[order[to]]);
        verdict.wrong(|| {
            format!(
                "{} to {}: {} requests, {over:.3} more than {} a day and {} at once allow",
                run.show(first),
                run.at(last.t),
                to - from + 1,
                limit.per_day(),
                limit.burst()
            )
        });
    }
    false
}

/// When they began, in order, as far as the API tells; else when they came.
fn starts(run: &Run, part: &[&Receipt]) -> (Vec<usize>, Vec<i128>) {
    let start = |receipt: &Receipt| {
        let later = |other: &Receipt| other.attempt == receipt.attempt && other.t > receipt.t;
        let arrival = i128::from(receipt.t);
        if run.is_virtual() || !run.faults.clocks_are_true() || run.requests_of(receipt.delivery).any(later) {
            return arrival;
        }
        let told = run.attempt(receipt.delivery, receipt.attempt).and_then(|attempt| attempt.started_at);
        let started =
            told.zip(receipt.wall_ms).map(|(told, wall)| arrival - i128::from(wall - told) * MILLI as i128);
        started.filter(|at| *at <= arrival && arrival - at <= i128::from(BELIEVED)).unwrap_or(arrival)
    };
    let mut all: Vec<(i128, usize)> =
        part.iter().enumerate().map(|(index, one)| (start(one), index)).collect();
    all.sort_unstable();
    (all.iter().map(|one| one.1).collect(), all.iter().map(|one| one.0).collect())
}

/// Between which two the bound is broken by most, and by how much.
fn worst(limit: &RateLimit, times: &[i128], slack: i128) -> Option<(usize, usize, f64)> {
    let (per_day, burst) = (limit.per_day(), limit.burst());
    let mut least: Option<(i128, usize)> = None;
    let mut worst: Option<(i128, usize, usize)> = None;
    for (index, at) in times.iter().enumerate() {
        let place = index as i128;
        let before = place * TOKEN - per_day * at;
        if least.is_none_or(|(least, _)| before < least) {
            least = Some((before, index));
        }
        let (lowest, from) = least.unwrap_or((before, index));
        let over =
            (place + 1) * TOKEN - per_day * at - lowest - burst.saturating_mul(TOKEN) - per_day * slack;
        if over > 0 && worst.is_none_or(|(most, ..)| over > most) {
            worst = Some((over, from, index));
        }
    }
    worst.map(|(over, from, to)| (from, to, over as f64 / TOKEN as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::policy::Per;

    /// The bound by its words: every pair.
    fn by_pairs(limit: &RateLimit, times: &[i128]) -> bool {
        (0..times.len()).all(|j| {
            (0..=j).all(|i| {
                let most = limit.burst() * TOKEN + limit.per_day() * (times[j] - times[i]);
                (j - i + 1) as i128 * TOKEN <= most
            })
        })
    }

    proptest::proptest! {
        #[test]
        fn one_pass_is_the_bound_for_every_pair(
            gaps in proptest::collection::vec(0_i128..3_000, 1..60), burst in 1_u64..6, max in 1_u64..120,
        ) {
            let times: Vec<i128> =
                gaps.iter().scan(0, |at, gap| { *at += gap * i128::from(MILLI); Some(*at) }).collect();
            let limit = RateLimit { max_per_minute: None, max: Some(max), per: Per::Minute, burst_capacity: Some(burst) };
            proptest::prop_assert_eq!(worst(&limit, &times, 0).is_none(), by_pairs(&limit, &times));
        }
    }
}
