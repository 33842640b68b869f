//! I5: in any time of length T at most `burst + rate · (T + J)` requests begin at a destination, across restarts and nodes.
//!
//! For every pair `i ≤ j`: `j - i + 1 ≤ burst + rate · (tⱼ - tᵢ + J)`. With the parts of `i` on one side, that is one
//! comparison for each request, with the least `i - rate · tᵢ` so far. Whole numbers throughout.
//!
//! A start is not an arrival: on a busy machine requests wait between the two, and J, which has room for that, hides a small
//! breach. So the starts that the API tells are held against the bound as well, and with no J: some of all starts, since
//! those that died with a process are not told, must keep to it, too.

use crate::history::policy::RateLimit;
use crate::run::{MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// A token, in the unit of the sums: every period divides a day, so that a nanosecond gains a whole number.
const TOKEN: i128 = 86_400 * SECOND as i128;
/// A start that is told to lie further from its arrival is not believed.
const BELIEVED: i128 = 2 * SECOND as i128;
/// Starts are told in whole milliseconds, and so is the distance between the two clocks.
const ROUNDED: i128 = 2 * MILLI as i128;
/// Over a restart both clocks of the server are rounded once more, before and after.
const ROUNDED_BY_RESTART: i128 = 2 * MILLI as i128;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I5", "rate");
    let breaks = run.faults.unseen_steps();
    let mut starts = 0;
    for (place, _) in run.places() {
        let mut part: Vec<&Receipt> = Vec::new();
        let mut limit = None;
        let mut flush = |part: &mut Vec<&Receipt>, limit: Option<RateLimit>, verdict: &mut Verdict| {
            if let Some(limit) = limit {
                starts += judge_part(run, &limit, part, verdict);
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
    verdict.note(starts, "also by when the API says that they began");
    verdict
}

/// The limit that is in force for certain.
fn sole_limit(run: &Run, place: u32, t: u64) -> Option<RateLimit> {
    let mut all = run.destinations[place as usize].timeline.possible(t).map(|policy| policy.rate_limit);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Judges a stretch under one limit; returns how many starts the API tells.
fn judge_part(run: &Run, limit: &RateLimit, part: &[&Receipt], verdict: &mut Verdict) -> u64 {
    verdict.checked += part.len() as u64;
    let arrivals: Vec<(i128, &Receipt)> =
        part.iter().map(|receipt| (i128::from(receipt.t), *receipt)).collect();
    let starts = starts(run, part);
    let told = starts.len() as u64;
    for (what, times, slack) in [("came", arrivals, i128::from(run.jitter)), ("began", starts, ROUNDED)] {
        let Some((from, to, over)) = worst(limit, &times, slack) else { continue };
        let (first, last, count) = (times[from].1, times[to].1, to - from + 1);
        verdict.wrong(|| {
            let (per_day, burst) = (limit.per_day(), limit.burst());
            let (first, last) = (run.show(first), run.at(last.t));
            format!("{first} to {last}: {count} {what}, {over:.3} more than {per_day} a day and {burst} at once allow")
        });
        break;
    }
    told
}

/// When they began, in order, as far as the API tells. Where time is virtual, requests come when they begin.
fn starts<'a>(run: &Run, part: &[&'a Receipt]) -> Vec<(i128, &'a Receipt)> {
    let Some(offset) = run.mono_to_wall_ms.filter(|_| !run.is_virtual() && run.faults.clocks_are_true())
    else {
        return Vec::new();
    };
    let start = |receipt: &&'a Receipt| {
        let later = |other: &Receipt| other.attempt == receipt.attempt && other.t > receipt.t;
        let told = run.attempt(receipt.delivery, receipt.attempt)?.started_at?;
        let started = i128::from(told - offset) * i128::from(MILLI);
        let believed = (i128::from(receipt.t) - started).abs() <= BELIEVED;
        let restarts = run.faults.outages.partition_point(|outage| i128::from(outage.from) <= started);
        let stored = !run.requests_of(receipt.delivery).any(later);
        (believed && stored).then_some((started + ROUNDED_BY_RESTART * restarts as i128, *receipt))
    };
    let mut all: Vec<(i128, &Receipt)> = part.iter().filter_map(start).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Between which two the bound is broken by most, and by how much.
fn worst(limit: &RateLimit, times: &[(i128, &Receipt)], slack: i128) -> Option<(usize, usize, f64)> {
    worst_of(limit, times.iter().map(|(at, _)| *at), slack)
}

fn worst_of(
    limit: &RateLimit,
    times: impl Iterator<Item = i128>,
    slack: i128,
) -> Option<(usize, usize, f64)> {
    let (per_day, burst) = (limit.per_day(), limit.burst());
    let mut least: Option<(i128, usize)> = None;
    let mut worst: Option<(i128, usize, usize)> = None;
    for (index, at) in times.enumerate() {
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
            proptest::prop_assert_eq!(worst_of(&limit, times.iter().copied(), 0).is_none(), by_pairs(&limit, &times));
        }
    }
}
