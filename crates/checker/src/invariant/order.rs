//! I8: in a line (a `fifo` destination, or an ordering key) one request at a time, and none begins before every earlier
//! event is done: answered 2xx, or final by policy.
//!
//! Which event is the earlier one is certain only where its producer had the answer before the other was sent, and within
//! a batch. Events that are to be delivered later join their line when due, so nothing has to wait for them. A clock that is
//! set back makes later events the earlier ones: across that, nothing is compared.

use std::collections::HashMap;

use crate::history::State;
use crate::history::policy::{OnExhausted, Ordering};
use crate::names::Name;
use crate::run::{Accepted, Delivery, MILLI, NEVER, Receipt, Run};
use crate::verdict::Verdict;

/// What has less left to live is not begun any more, and counts as expired.
const TOO_LITTLE_LEFT_MS: i64 = 250;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I8", "order");
    let mut undone = 0;
    for (place, destination) in run.places() {
        let phases = destination.timeline.phases();
        let ordering = phases[0].policy.ordering;
        if ordering == Ordering::None || phases.iter().any(|phase| phase.policy.ordering != ordering) {
            continue;
        }
        let line_of = |accepted: &Accepted| match ordering {
            Ordering::Fifo => Some(None),
            _ => run.sent(accepted).ordering_key.map(Some),
        };
        for events in lines(run, place, line_of).values() {
            undone += in_order(run, place, events, &mut verdict);
        }
        one_at_a_time(run, place, line_of, &mut verdict);
    }
    verdict.note(undone, "overtaken because a fault undid what had made them final");
    verdict
}

/// An event in its line.
struct Member<'a> {
    accepted: &'a Accepted,
    /// Its first request.
    first: Option<&'a Receipt>,
    done: u64,
    dead: bool,
}

type Line = Option<Name>;

fn lines<'a>(
    run: &'a Run,
    place: u32,
    line_of: impl Fn(&Accepted) -> Option<Line>,
) -> HashMap<Line, Vec<Member<'a>>> {
    let mut received: HashMap<Name, Vec<&Receipt>> = HashMap::new();
    for receipt in run.requests_at(place) {
        if !run.delivery(receipt.delivery).is_some_and(|delivery| delivery.is_replay) {
            received.entry(receipt.event).or_default().push(receipt);
        }
    }
    let here = |delivery: &&Delivery| delivery.destination == Some(place) && !delivery.is_replay;
    let rest: HashMap<Name, &Delivery> =
        run.deliveries.iter().filter(here).map(|delivery| (delivery.event, delivery)).collect();
    let mut lines: HashMap<Line, Vec<Member<'a>>> = HashMap::new();
    for accepted in &run.accepted {
        let Some(line) = line_of(accepted).filter(|_| run.may_get(place, run.sent(accepted))) else {
            continue;
        };
        let requests = received.get(&accepted.id).map_or(&[][..], Vec::as_slice);
        let delivery = rest.get(&accepted.id).copied();
        let dead = delivery.is_some_and(|delivery| delivery.state == State::DeadLetter);
        let member =
            Member { accepted, first: requests.first().copied(), done: done(run, requests, delivery), dead };
        lines.entry(line).or_default().push(member);
    }
    lines
}

/// From when on nothing waits for it.
fn done(run: &Run, requests: &[&Receipt], delivery: Option<&Delivery>) -> u64 {
    let taken = requests.iter().filter(|receipt| receipt.succeeded()).map(|receipt| receipt.end).min();
    if let Some(taken) = taken {
        return taken;
    }
    let Some(delivery) = delivery else { return 0 };
    if !delivery.state.is_final() {
        return NEVER;
    }
    // Without a request that succeeded: whether that may be is another promise's matter.
    let Some(finished) = delivery.finished_at.filter(|_| delivery.state != State::Delivered) else {
        return 0;
    };
    let stale = delivery.expires_at.map_or(i64::MAX, |at| at - TOO_LITTLE_LEFT_MS);
    let finished = if delivery.state == State::Expired { finished.min(stale) } else { finished };
    let jitter = i64::try_from(run.jitter / MILLI).unwrap_or(0);
    let earliest = finished - run.faults.most_ahead_until(NEVER) - jitter - 1;
    let last = requests.iter().map(|receipt| run.known_end(receipt)).max().unwrap_or(0);
    let last = if delivery.state == State::Cancelled { 0 } else { last };
    run.moment_of(earliest).unwrap_or(0).max(last)
}

/// Judges one line; returns how many were overtaken because of a fault.
fn in_order(run: &Run, place: u32, events: &[Member<'_>], verdict: &mut Verdict) -> u64 {
    let publication = |member: &Member<'_>| run.sent(member.accepted).publication;
    let scheduled = |member: &Member<'_>| run.sent(member.accepted).is_scheduled;
    let mut later: Vec<&Member<'_>> = events.iter().collect();
    later.sort_by_key(|member| (member.accepted.sent_at, member.accepted.sent));
    let mut earlier: Vec<&Member<'_>> = events.iter().filter(|member| !scheduled(member)).collect();
    earlier.sort_by_key(|member| member.accepted.known_at);
    let mut earlier = earlier.into_iter().peekable();
    let (mut slowest, mut in_batch): (Option<&Member<'_>>, Option<&Member<'_>>) = (None, None);
    let (mut epoch, mut batch, mut undone) = (0, u32::MAX, 0);
    for member in later {
        let now = run.faults.set_back_before(member.accepted.sent_at);
        if now != epoch {
            (epoch, slowest) = (now, None);
        }
        while let Some(before) = earlier.next_if(|before| before.accepted.known_at < member.accepted.sent_at)
        {
            if run.faults.set_back_before(before.accepted.sent_at) == epoch {
                slowest = slowest.filter(|other| other.done >= before.done).or(Some(before));
            }
        }
        if batch != publication(member) {
            (batch, in_batch) = (publication(member), None);
        }
        if let Some(first) = member.first {
            verdict.judge();
            for before in [slowest, in_batch].into_iter().flatten() {
                undone += u64::from(judge_pair(run, place, before, member, first, verdict));
            }
        }
        if !scheduled(member) {
            in_batch = in_batch.filter(|other| other.done >= member.done).or(Some(member));
        }
    }
    undone
}

/// Judges `first`, the first request of `member`, which comes after `before`; says whether a fault excuses it.
fn judge_pair(
    run: &Run,
    place: u32,
    before: &Member<'_>,
    member: &Member<'_>,
    first: &Receipt,
    verdict: &mut Verdict,
) -> bool {
    let timeline = &run.destinations[place as usize].timeline;
    let halts = timeline.constant().is_some_and(|policy| policy.on_exhausted == OnExhausted::Halt);
    let waited_for = run.text(before.accepted.id);
    if before.done > first.t {
        let undone = before.first.is_some_and(|request| {
            let tried = run.requests_of(request.delivery).filter(|one| one.end <= first.t);
            tried.last().is_some_and(|one| run.faults.took_result(one, before.done).is_some())
        });
        if undone {
            return true;
        }
        let done = run.at(before.done);
        verdict.wrong(|| format!("{} began before {waited_for}, which is done at {done}", run.show(first)));
    } else if before.dead && halts && !timeline.is_touched(before.done, first.t) {
        let id = run.text(member.accepted.id);
        verdict.wrong(|| format!("{id} began at {}, though its line halts at {waited_for}", run.at(first.t)));
    }
    false
}

fn one_at_a_time(run: &Run, place: u32, line_of: impl Fn(&Accepted) -> Option<Line>, verdict: &mut Verdict) {
    let mut open: HashMap<Line, &Receipt> = HashMap::new();
    for receipt in run.requests_at(place) {
        let Some(line) = run.accepted(receipt.event).and_then(&line_of) else { continue };
        verdict.judge();
        let Some(before) = open.insert(line, receipt) else { continue };
        if run.known_end(before) > receipt.t {
            if !run.faults.is_replaced(before.t, receipt.t) {
                let other = run.show(before);
                verdict.wrong(|| format!("{} began while {other} was open", run.show(receipt)));
            }
            if before.end > receipt.end {
                open.insert(line, before);
            }
        }
    }
}
