//! How long deliveries wait that nothing holds: to destinations without a limit that answer everything with 2xx, with
//! nothing of their own before them, while no node is disturbed. Fairness and liveness share this.

use std::collections::HashMap;

use crate::history::Policy;
use crate::history::policy::Ordering;
use crate::names::Name;
use crate::run::{Expect, NEVER, Receipt, Run, SECOND};

/// What may go goes within this time: there is room for a lost wake-up and for slots that move.
pub(super) const AT_ONCE: u64 = 2 * SECOND;
/// So many waiting at one destination are a crowd.
const CROWD: i64 = 20;

/// A delivery that nothing held.
pub(super) struct Waited<'a> {
    pub(super) event: Name,
    pub(super) destination: u32,
    /// Its producer knew of it.
    pub(super) known_at: u64,
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
        self.length() > AT_ONCE + run.jitter
    }
    pub(super) fn show(&self, run: &Run) -> String {
        let (id, place) = (run.text(self.event), run.name_of(self.destination));
        let (known, first) = (run.at(self.known_at), run.at(self.first.t));
        format!("{id}, accepted at {known}, came to {place} at {first}, though nothing held it")
    }
}

/// All of them.
pub(super) fn waited(run: &Run) -> Vec<Waited<'_>> {
    let firsts: Vec<HashMap<Name, &Receipt>> = run.places().map(|(place, _)| firsts(run, place)).collect();
    let crowds = Crowds::find(run, &firsts);
    let mut all = Vec::new();
    for (place, mut members) in (0..).zip(members(run, &firsts)) {
        members.sort_unstable_by_key(|(known_at, id, _)| (*known_at, *id));
        // Until when those before it were waiting or open.
        let mut busy_until = 0;
        for (known_at, event, first) in members {
            let alone = busy_until <= known_at;
            busy_until = busy_until.max(first.map_or(NEVER, |first| first.end));
            let Some(first) = first.filter(|_| alone) else { continue };
            let until = first.t.min(known_at.saturating_add(AT_ONCE)).max(known_at);
            if run.faults.is_calm(known_at, until) {
                let crowded = crowds.besides(place, known_at, until);
                all.push(Waited { event, destination: place, known_at, first, crowded });
            }
        }
    }
    all
}

type Member<'a> = (u64, Name, Option<&'a Receipt>);

/// What each destination that nothing holds was to get: when that was known, and its first request.
fn members<'a>(run: &'a Run, firsts: &[HashMap<Name, &'a Receipt>]) -> Vec<Vec<Member<'a>>> {
    let easy: Vec<bool> = run
        .places()
        .map(|(place, destination)| {
            destination.timeline.constant().is_some_and(is_easy)
                && run.requests_at(place).all(Receipt::succeeded)
        })
        .collect();
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

fn is_easy(policy: &Policy) -> bool {
    policy.active
        && !policy.paused
        && policy.rate_limit.is_none()
        && policy.delivery_schedules.is_empty()
        && policy.ordering == Ordering::None
}

fn firsts(run: &Run, place: u32) -> HashMap<Name, &Receipt> {
    let mut firsts = HashMap::new();
    for receipt in run.requests_at(place) {
        firsts.entry(receipt.event).or_insert(receipt);
    }
    firsts
}

/// From when to when so many waited at a destination.
struct Crowds {
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

    /// Whether another destination than `place` had one between two moments.
    fn besides(&self, place: u32, from: u64, until: u64) -> bool {
        let begun = self.all.partition_point(|(since, ..)| *since <= until);
        let near = (0..begun).rev().take_while(|index| self.reach[*index] >= from);
        near.map(|index| self.all[index]).any(|(_, to, other)| other != place && to >= from)
    }
}
