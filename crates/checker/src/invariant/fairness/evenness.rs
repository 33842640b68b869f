//! How evenly equal backlogs are served: destinations with equal policies, no rate of their own and a crowd each all the
//! time get nearly the same number of requests, by Jain's index. Receivers that take longer get less, rightly, so theirs
//! are not equal backlogs, nor are those with failures, or that asked to be left alone.

use crate::history::Policy;
use crate::invariant::waits::{Crowds, FORGIVEN, is_easy};
use crate::run::{Ending, MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// The least index: two that get 5 and 8 are about that.
const EVEN: f64 = 0.95;
/// Shorter stretches say little.
const SHORTEST: u64 = SECOND / 4;
/// So few requests for each say little, too.
const FEWEST: usize = 20;
/// Receivers are equally fast if what they take on average differs by no more, or by a tenth.
const SAME: u64 = 2 * MILLI;

/// Judges it.
pub(super) fn judge(run: &Run, crowds: &Crowds, verdict: &mut Verdict) {
    let mut least: Option<f64> = None;
    let mut stretches = 0;
    for group in equals(run) {
        for (from, to, places) in crowds.together(&group) {
            let is_calm = to - from >= SHORTEST && run.faults.is_calm(from, to);
            let Some(counts) =
                (is_calm && places.len() > 1).then(|| served(run, from, to, &places)).flatten()
            else {
                continue;
            };
            let index = jain(&counts);
            verdict.judge();
            stretches += 1;
            least = Some(least.map_or(index, |least| least.min(index)));
            if index < EVEN {
                verdict.wrong(|| {
                    let names: Vec<&str> = places.iter().map(|place| run.name_of(*place)).collect();
                    let (names, from, to) = (names.join(", "), run.at(from), run.at(to));
                    format!(
                        "{names}, equal backlogs all the time, got {counts:?} requests from {from} to {to}"
                    )
                });
            }
        }
    }
    verdict.notes.push(match least {
        Some(least) => format!("Jain's index over equal backlogs: {least:.3} or more, {stretches} times"),
        None => "no equal backlogs: how evenly they are served is not judged".to_owned(),
    });
}

/// Destinations whose policies are the same but for where they lead and what they get.
fn equals(run: &Run) -> Vec<Vec<u32>> {
    let mut groups: Vec<(Policy, Vec<u32>)> = Vec::new();
    for (place, destination) in run.places() {
        let without_rate = |policy: &&Policy| is_easy(policy) && policy.rate_limit.is_none();
        let Some(policy) = destination.timeline.constant().filter(without_rate) else { continue };
        let policy = Policy { url: None, event_types: Vec::new(), ..policy.clone() };
        match groups.iter_mut().find(|(other, _)| *other == policy) {
            Some((_, places)) => places.push(place),
            None => groups.push((policy, vec![place])),
        }
    }
    groups.into_iter().map(|(_, places)| places).filter(|places| places.len() > 1).collect()
}

/// How many requests each got, if that can be compared.
fn served(run: &Run, from: u64, to: u64, places: &[u32]) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    let mut means = Vec::new();
    for place in places {
        if may_be_shut(run, *place, from, to) {
            return None;
        }
        let all: Vec<&Receipt> = run.requests_at(*place).filter(|one| (from..to).contains(&one.t)).collect();
        let took: u64 = all.iter().map(|one| one.end - one.t).sum();
        means.extend(took.checked_div(all.len() as u64));
        counts.push(all.len());
    }
    let (fastest, slowest) = (means.iter().min()?, means.iter().max()?);
    let comparable =
        slowest - fastest <= SAME.max(slowest / 10) && counts.iter().sum::<usize>() >= FEWEST * counts.len();
    comparable.then_some(counts)
}

/// Whether it asked to be left alone before, or failed meanwhile or so lately that its breaker may be open.
fn may_be_shut(run: &Run, place: u32, from: u64, to: u64) -> bool {
    let asked = |one: &Receipt| one.ending == Ending::Answered && matches!(one.status, 410 | 429 | 503);
    let lately = |one: &Receipt| one.end >= from.saturating_sub(FORGIVEN);
    let begun = || run.requests_at(place).take_while(|one| one.t < to);
    let last = begun().filter(|one| one.end < from).max_by_key(|one| one.end);
    begun().any(|one| !one.succeeded() && (asked(one) || lately(one)))
        || last.is_some_and(|one| !one.succeeded())
}

/// 1: all the same; one part of how many there are: one got everything.
fn jain(counts: &[usize]) -> f64 {
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    sum.powi(2) / (counts.len() as f64 * squares)
}
