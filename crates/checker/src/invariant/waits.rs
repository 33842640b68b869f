//! How long deliveries wait that nothing holds: with nothing of their own destination before them, a token for certain if it
//! has a rate, and a receiver that has not failed so often of late that its breaker may be open, nor asked to be left
//! alone, while no node is disturbed. Fairness and liveness share this.

use std::collections::HashMap;

use crate::history::Policy;
use crate::history::policy::{Mode, Ordering};
use crate::names::Name;
use crate::run::{Expect, NEVER, Receipt, Run, SECOND};

/// What may go goes within this time: there is room for a lost wake-up and for slots that move.
pub(super) const AT_ONCE: u64 = 2 * SECOND;
/// So many waiting at one destination are a crowd.
pub(super) const CROWD: i64 = 20;
/// No closed breaker counts failures from before. One that was open counts until enough went well.
pub(super) const FORGIVEN: u64 = 660 * SECOND;

/// A delivery that nothing held.
pub(super) struct Waited<'a> {
    pub(super) event: Name,
    pub(super) destination: u32,
    /// Its producer knew of it.
    pub(super) known_at: u64,
    /// There is a token for it so much later at the latest.
    pub(super) token: u64,
    /// Its first request.
    pub(super) first: &'a Receipt,
    /// Whether another destination had a crowd waiting meanwhile.
    pub(super) crowded: bool,
}

impl Waited<'_> {
    pub(super) const fn length(&self) -> u64 {
        self.first.t.saturating_sub(self.known_at)
    }
    /// Whether it waited too long.
    pub(super) fn is_late(&self, run: &Run) -> bool {
        self.length() > AT_ONCE + self.token + run.jitter
    }
    pub(super) fn show(&self, run: &Run) -> String {
        let (id, place) = (run.text(self.event), run.name_of(self.destination));
        let (known, first) = (run.at(self.known_at), run.at(self.first.t));
        format!("{id}, accepted at {known}, came to {place} at {first}, though nothing held it")
    }
}

/// All of them, and the crowds.
pub(super) fn waited(run: &Run) -> (Vec<Waited<'_>>, Crowds) {
    let firsts: Vec<HashMap<Name, &Receipt>> = run.places().map(|(place, _)| firsts(run, place)).collect();
    let crowds = Crowds::find(run, &firsts);
    let mut all = Vec::new();
    for (place, mut members) in (0..).zip(members(run, &firsts)) {
        members.sort_unstable_by_key(|(known_at, id, _)| (*known_at, *id));
        // Until when those before it were waiting or open.
        let mut busy_until = 0;
        let troubles = Troubles::of(run, place);
        let policy = run.destinations[place as usize].timeline.constant();
        let token = policy.map_or(0, time_of_a_token);
        // What may have been open when a node died may have taken a token each.
        let lost = token.saturating_mul(policy.map_or(0, |policy| u64::from(policy.max_concurrency)));
        let debts = if token > 0 { run.faults.paid_back(lost) } else { Vec::new() };
        for (known_at, event, first) in members {
            let alone = busy_until <= known_at;
            busy_until = busy_until.max(first.map_or(NEVER, |first| first.end));
            let Some(first) = first.filter(|_| alone) else { continue };
            let until = first.t.min(known_at.saturating_add(AT_ONCE + token)).max(known_at);
            let in_debt = debts.iter().any(|(from, paid)| *from <= until && *paid >= known_at);
            if !in_debt && run.faults.is_calm(known_at, until) && troubles.none_before(known_at, until) {
                let crowded = crowds.besides(place, known_at, until);
                all.push(Waited { event, destination: place, known_at, token, first, crowded });
            }
        }
    }
    (all, crowds)
}

type Member<'a> = (u64, Name, Option<&'a Receipt>);

/// What each destination that nothing holds was to get: when that was known, and its first request.
fn members<'a>(run: &'a Run, firsts: &[HashMap<Name, &'a Receipt>]) -> Vec<Vec<Member<'a>>> {
    let easy: Vec<bool> =
        run.places().map(|(_, destination)| destination.timeline.constant().is_some_and(is_easy)).collect();
    let mut members: Vec<Vec<Member<'_>>> = easy.iter().map(|_| Vec::new()).collect();
    for accepted in run.accepted.iter().filter(|accepted| !run.sent(accepted).is_scheduled) {
        for (place, _) in run.recipients(run.sent(accepted)) {
            if easy[place as usize] {
                let first = firsts[place as usize].get(&accepted.id).copied();
                members[place as usize].push((accepted.known_at, accepted.id, first));
            }
        }
    }
    members
}

/// Whether it has no gate but its concurrency, its rate and its breaker.
pub(super) fn is_easy(policy: &Policy) -> bool {
    policy.active
        && !policy.paused
        && policy.rate_limit.is_none_or(|limit| limit.mode == Mode::Fixed)
        && policy.delivery_schedules.is_empty()
        && policy.ordering == Ordering::None
}

/// After so long without a request there is a token.
fn time_of_a_token(policy: &Policy) -> u64 {
    let per_day = policy.rate_limit.map_or(0, |limit| limit.per_day());
    let day = i128::from(86_400 * SECOND);
    day.checked_div(per_day).and_then(|time| u64::try_from(time).ok()).unwrap_or(0)
}

/// What a receiver did that may hold later requests.
struct Troubles {
    /// Requests, as (begin, end), by begin.
    requests: Vec<(u64, u64)>,
    /// The latest end of those up to each.
    reach: Vec<u64>,
    /// Failures, by their end.
    failures: Vec<u64>,
    /// Ends, each with the failures since so many successes in a row that no breaker is open after them.
    doubts: Vec<(u64, usize)>,
    /// It asked to be left alone for the first time.
    told_at: u64,
    /// So many failures may open its breaker.
    most: usize,
}

impl Troubles {
    fn of(run: &Run, place: u32) -> Self {
        let requests: Vec<(u64, u64)> = run.requests_at(place).map(|one| (one.t, one.end)).collect();
        let reach = requests.iter().scan(0, |reach, (_, end)| {
            *reach = (*reach).max(*end);
            Some(*reach)
        });
        let reach = reach.collect();
        let failed = run.requests_at(place).filter(|one| !one.succeeded());
        let mut failures: Vec<u64> = failed.clone().map(|one| one.end).collect();
        failures.sort_unstable();
        let policy = run.destinations[place as usize].timeline.constant();
        let to_close = policy.map_or(u32::MAX, |policy| policy.circuit_breaker.successes_to_close);
        let mut ends: Vec<(u64, bool)> =
            run.requests_at(place).map(|one| (one.end, one.succeeded())).collect();
        ends.sort_unstable();
        let doubts = ends.into_iter().scan((0, 0), |(failed, well), (end, succeeded)| {
            (*failed, *well) = if succeeded { (*failed, *well + 1) } else { (*failed + 1, 0) };
            *failed = if *well >= to_close { 0 } else { *failed };
            Some((end, *failed))
        });
        let doubts = doubts.collect();
        let told = failed.filter(|one| matches!(one.status, 410 | 429 | 503)).map(|one| one.end);
        let told_at = told.min().unwrap_or(NEVER);
        let most = policy.map_or(0, |policy| policy.circuit_breaker.consecutive_failures.min(5) as usize);
        Self { requests, reach, failures, doubts, told_at, most }
    }

    /// Whether nothing that came before, nor any other request meanwhile, can hold one between two moments.
    fn none_before(&self, from: u64, until: u64) -> bool {
        let begun = self.requests.partition_point(|(t, _)| *t < from);
        let idle = begun.checked_sub(1).is_none_or(|last| self.reach[last] <= from)
            && self.requests[begun..].iter().take_while(|(t, _)| *t < until).next().is_none();
        let old = self.failures.partition_point(|end| *end < from.saturating_sub(FORGIVEN));
        let failed = self.failures[old..].iter().take_while(|end| **end <= until).count();
        let ended = self.doubts.partition_point(|(end, _)| *end <= until);
        let doubts = ended.checked_sub(1).map_or(0, |last| self.doubts[last].1);
        idle && self.told_at > until && failed < self.most && doubts < self.most
    }
}

fn firsts(run: &Run, place: u32) -> HashMap<Name, &Receipt> {
    let mut firsts = HashMap::new();
    for receipt in run.requests_at(place) {
        firsts.entry(receipt.event).or_insert(receipt);
    }
    firsts
}

/// From when to when so many waited at a destination.
pub(super) struct Crowds {
    /// In the order of their beginning.
    all: Vec<(u64, u64, u32)>,
    /// The latest end of those up to each.
    reach: Vec<u64>,
}

impl Crowds {
    fn find(run: &Run, firsts: &[HashMap<Name, &Receipt>]) -> Self {
        let mut steps: Vec<Vec<(u64, i64)>> = firsts.iter().map(|_| Vec::new()).collect();
        for accepted in &run.accepted {
            for (place, expect) in run.recipients(run.sent(accepted)) {
                if expect == Expect::Yes {
                    let first = firsts[place as usize].get(&accepted.id).map_or(NEVER, |first| first.t);
                    steps[place as usize].push((accepted.known_at.min(first), 1));
                    steps[place as usize].push((first, -1));
                }
            }
        }
        let mut all = Vec::new();
        for (place, mut steps) in (0..).zip(steps) {
            steps.sort_unstable();
            let (mut waiting, mut since) = (0, None);
            for (at, step) in steps {
                waiting += step;
                if waiting >= CROWD {
                    since.get_or_insert(at);
                } else if let Some(since) = since.take() {
                    all.push((since, at, place));
                }
            }
        }
        all.sort_unstable();
        let reach = all.iter().scan(0, |reach, (_, to, _)| {
            *reach = (*reach).max(*to);
            Some(*reach)
        });
        Self { reach: reach.collect(), all }
    }

    /// When some of these destinations had one, with the same ones all the time: from, to, and which.
    pub(super) fn together(&self, places: &[u32]) -> Vec<(u64, u64, Vec<u32>)> {
        let of_these = || self.all.iter().filter(|(.., place)| places.contains(place));
        let mut turns: Vec<u64> = of_these().flat_map(|(since, to, _)| [*since, *to]).collect();
        turns.sort_unstable();
        turns.dedup();
        let stretch = |turns: &[u64]| {
            let (from, to) = (turns[0], turns[1]);
            let lasts = |crowd: &&(u64, u64, u32)| crowd.0 <= from && crowd.1 >= to;
            (from, to, of_these().filter(lasts).map(|(.., place)| *place).collect())
        };
        turns.windows(2).map(stretch).collect()
    }

    /// Whether another destination than `place` had one between two moments.
    fn besides(&self, place: u32, from: u64, until: u64) -> bool {
        let begun = self.all.partition_point(|(since, ..)| *since <= until);
        let near = (0..begun).rev().take_while(|index| self.reach[*index] >= from);
        near.map(|index| self.all[index]).any(|(_, to, other)| other != place && to >= from)
    }
}
