//! I1: nothing is lost. What was answered with 202 has, at each destination that gets it, one delivery and no more; every
//! delivery that there is at rest is final; and each end is one that what was seen leads to.

mod ends;

use std::collections::{HashMap, HashSet};

use crate::history::State;
use crate::names::Name;
use crate::run::{Delivery, Digest, Expect, Run};
use crate::verdict::Verdict;
use ends::Ends;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I1", "no loss");
    if !run.at_rest {
        verdict.notes.push("the run did not come to rest".to_owned());
        return verdict;
    }
    let of_event = by_event(run);
    for accepted in &run.accepted {
        let known = of_event.get(&accepted.id).map_or(&[][..], Vec::as_slice);
        let shown = || format!("{}, accepted at {},", run.text(accepted.id), run.at(accepted.known_at));
        let sent = run.sent(accepted);
        let deleted = known.iter().any(|index| run.deliveries[*index as usize].destination.is_none());
        for (destination, expect) in run.recipients(sent) {
            let here = known.iter().map(|index| &run.deliveries[*index as usize]);
            let mut here = here.filter(|delivery| delivery.destination == Some(destination));
            let place = run.name_of(destination);
            match (here.next(), here.next()) {
                (Some(one), Some(two)) => {
                    let (one, two) = (run.text(one.id), run.text(two.id));
                    verdict.wrong(|| format!("{} has two deliveries to {place}: {one}, {two}", shown()));
                }
                (None, _) if expect == Expect::Yes && !deleted => {
                    verdict.judge();
                    verdict.wrong(|| format!("{} has no delivery to {place}", shown()));
                }
                _ => {}
            }
        }
        let elsewhere = |delivery: &&Delivery| delivery.destination.is_some_and(|to| !run.may_get(to, sent));
        for stray in known.iter().map(|index| &run.deliveries[*index as usize]).filter(elsewhere) {
            verdict.wrong(|| format!("{} has {}, to where it does not belong", shown(), run.text(stray.id)));
        }
    }
    all_end_well(run, &mut verdict);
    whole_or_not_at_all(run, &mut verdict);
    verdict
}

/// Every delivery, whoever asked for it.
fn all_end_well(run: &Run, verdict: &mut Verdict) {
    let judge = Ends::new(run);
    let mut ends: HashMap<&str, u64> = HashMap::new();
    for delivery in &run.deliveries {
        verdict.judge();
        *ends.entry(word(delivery.state)).or_default() += 1;
        if let Some(what) = judge.wrong(delivery) {
            let place = delivery.destination.map_or("a deleted destination", |to| run.name_of(to));
            let (id, event) = (run.text(delivery.id), run.text(delivery.event));
            verdict.wrong(|| format!("{event} to {place}: {id} {what}"));
        }
    }
    let mut ends: Vec<String> = ends.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    ends.sort();
    verdict.notes.push(format!("{} events accepted; {}", run.accepted.len(), ends.join(", ")));
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
