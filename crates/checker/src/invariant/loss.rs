//! I1: nothing is lost. What was answered with 202 ends, at each destination that gets it, in exactly one of delivered, dead
//! letter, expired and cancelled; and delivered means that the receiver answered 2xx.

use std::collections::{HashMap, HashSet};

use super::why_repeated;
use crate::history::State;
use crate::names::Name;
use crate::run::{Delivery, Digest, Expect, NEVER, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I1", "no loss");
    if run.deliveries.is_empty() {
        verdict.notes.push("there is no API dump".to_owned());
        return verdict;
    }
    let mut ends: HashMap<&str, u64> = HashMap::new();
    let of_event = by_event(run);
    for accepted in &run.accepted {
        let known = of_event.get(&accepted.id).map_or(&[][..], Vec::as_slice);
        let shown = || format!("{}, accepted at {},", run.text(accepted.id), run.at(accepted.known_at));
        for (destination, expect) in run.recipients(run.sent(accepted)) {
            let mut here = known.iter().map(|index| &run.deliveries[*index as usize]);
            let mut here = here.by_ref().filter(|delivery| delivery.destination == Some(destination));
            let place = run.name_of(destination);
            let Some(delivery) = here.next() else {
                let deleted = known.iter().any(|index| run.deliveries[*index as usize].destination.is_none());
                if expect == Expect::Yes && !deleted {
                    verdict.judge();
                    verdict.wrong(|| format!("{} has no delivery to {place}", shown()));
                }
                continue;
            };
            verdict.judge();
            if let Some(other) = here.next() {
                let (one, two) = (run.text(delivery.id), run.text(other.id));
                verdict.wrong(|| format!("{} has two deliveries to {place}: {one}, {two}", shown()));
            }
            if let Some(what) = wrong_end(run, delivery) {
                verdict.wrong(|| format!("{} to {place}: {} {what}", shown(), run.text(delivery.id)));
            }
            *ends.entry(word(delivery.state)).or_default() += 1;
        }
    }
    whole_or_not_at_all(run, &mut verdict);
    let mut ends: Vec<String> = ends.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    ends.sort();
    verdict.notes.push(format!("{} events accepted; {}", run.accepted.len(), ends.join(", ")));
    verdict
}

/// Deliveries that nobody asked to repeat, by event.
fn by_event(run: &Run) -> HashMap<Name, Vec<u32>> {
    let mut of_event: HashMap<Name, Vec<u32>> = HashMap::with_capacity(run.deliveries.len());
    for (index, delivery) in (0..).zip(&run.deliveries) {
        if !delivery.is_replay {
            of_event.entry(delivery.event).or_default().push(index);
        }
    }
    of_event
}

fn wrong_end(run: &Run, delivery: &Delivery) -> Option<String> {
    let mut taken = run.requests_of(delivery.id).filter(|receipt| receipt.succeeded());
    match delivery.state {
        State::Delivered => {
            taken.next().is_none().then(|| "is delivered, but no receiver answered it with 2xx".to_owned())
        }
        state if !state.is_final() => Some(format!("is left {}", word(state))),
        state => {
            let kept = taken.find(|receipt| why_repeated(run, receipt, NEVER).is_none())?;
            Some(format!("was answered 2xx at {}, but is {}", run.at(kept.end), word(state)))
        }
    }
}

/// A batch of unknown end was accepted whole or not at all. Only where payloads tell events apart.
fn whole_or_not_at_all(run: &Run, verdict: &mut Verdict) {
    let came: HashSet<(Digest, u32)> =
        run.receipts.iter().filter_map(|receipt| Some((receipt.sha?, receipt.destination?))).collect();
    let mut copies: HashMap<Digest, u32> = HashMap::new();
    run.sent.iter().for_each(|sent| *copies.entry(sent.sha).or_default() += 1);
    for publication in run.publications.iter().filter(|one| one.is_unknown() && one.count > 1) {
        let first = publication.first as usize;
        let events = &run.sent[first..first + publication.count as usize];
        if events.iter().any(|sent| copies[&sent.sha] > 1 || sent.expires_at_ms.is_some()) {
            continue;
        }
        let expected = events.iter().flat_map(|sent| {
            let sure = run.recipients(sent).into_iter().filter(|(_, expect)| *expect == Expect::Yes);
            sure.map(|(destination, _)| came.contains(&(sent.sha, destination))).collect::<Vec<_>>()
        });
        let (all, arrived) =
            expected.fold((0, 0), |(all, arrived), came| (all + 1, arrived + u32::from(came)));
        verdict.judge();
        if arrived != 0 && arrived != all {
            verdict.wrong(|| {
                let (request, at) = (publication.request, run.at(publication.t));
                format!("of request {request}, sent at {at} and never answered, {arrived} of {all} came")
            });
        }
    }
}

const fn word(state: State) -> &'static str {
    match state {
        State::Queued => "queued",
        State::RetryScheduled => "retry_scheduled",
        State::Delivering => "delivering",
        State::Delivered => "delivered",
        State::DeadLetter => "dead_letter",
        State::Expired => "expired",
        State::Cancelled => "cancelled",
    }
}
