//! I4: a request begins only while fewer than `max_concurrency` are open at its receiver. The one exception: what a node
//! that is now frozen, cut off or dead had sent is not the new owner's. That is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::history::FaultKind;
use crate::run::faults::Outage;
use crate::run::{Ending, Receipt, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I4", "concurrency");
    let (mut excused, mut most) = (0, 0);
    for (place, _) in run.places() {
        let mut open: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        for index in &run.by_destination[place as usize] {
            let receipt = &run.receipts[*index as usize];
            while open.peek().is_some_and(|Reverse((end, _))| *end <= receipt.t) {
                open.pop();
            }
            open.push(Reverse((run.known_end(receipt), *index)));
            verdict.judge();
            let limit = run.policies(place, receipt).map(|policy| policy.max_concurrency).max();
            let limit = limit.unwrap_or(u32::MAX) as usize;
            most = most.max(open.len());
            if open.len() <= limit {
                continue;
            }
            let others = open.iter().map(|Reverse((_, other))| &run.receipts[*other as usize]);
            let zombies = others.filter(|other| is_nobodys(run, other, receipt.t)).count();
            if open.len() - zombies <= limit {
                excused += 1;
            } else {
                let count = open.len() - zombies;
                verdict.wrong(|| format!("{}: {count} open, {limit} are allowed", run.show(receipt)));
            }
        }
    }
    if verdict.checked > 0 {
        verdict.notes.push(format!("at most {most} open at a time"));
    }
    verdict.note(excused, "begun beside what a frozen, cut off or dead node had sent");
    verdict
}

/// Whether its sender cannot know of it any more at `at`.
fn is_nobodys(run: &Run, other: &Receipt, at: u64) -> bool {
    let of = |outage: &Outage| match outage.kind {
        FaultKind::Pause => {
            other.t <= outage.from.saturating_add(run.late()) && at <= outage.over.saturating_add(run.late())
        }
        FaultKind::Cut => other.t <= outage.acts_until && at <= outage.over.saturating_add(run.late()),
        _ => other.t <= outage.seen_until && other.ending == Ending::Closed,
    };
    other.t < at && run.faults.outages.iter().any(|outage| outage.replaced_from <= at && of(outage))
}
