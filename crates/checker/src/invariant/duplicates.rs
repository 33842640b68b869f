//! I3: a receiver gets an event again after it answered 2xx only if the sender was hit before that was stored, if the
//! answer came too late, or if somebody asked for a replay.
//!
//! How many a fault explains is bounded by what it can have taken: what was in flight, and what was answered no longer
//! before it than results take to be stored. How long that was at most is told, with the number.

use std::collections::BTreeMap;

use super::{Why, why_repeated};
use crate::run::{MILLI, Receipt, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I3", "duplicates explained");
    let mut order: Vec<u32> = (0..u32::try_from(run.receipts.len()).unwrap_or(u32::MAX)).collect();
    let get = |index: u32| &run.receipts[index as usize];
    // Stable: those of one event at one destination stay in the order of time.
    order.sort_by_key(|index| (get(*index).event, get(*index).destination));
    let mut explained = Explained::default();
    let mut taken: Option<&Receipt> = None;
    for index in order {
        let receipt = get(index);
        let same =
            |other: &&Receipt| (other.event, other.destination) == (receipt.event, receipt.destination);
        verdict.judge();
        if let Some(first) = taken.filter(same)
            && !explained.explain(run, first, receipt)
        {
            verdict.wrong(|| {
                let (again, at) = (run.show(receipt), run.at(first.end));
                format!("{again}, came again after attempt {} was answered 2xx at {at}", first.attempt)
            });
        }
        if receipt.succeeded() {
            taken = Some(receipt);
        }
    }
    explained.tell(&mut verdict);
    verdict
}

#[derive(Default)]
struct Explained {
    by_outage: BTreeMap<usize, u64>,
    /// The longest time from an answer to the fault that took it.
    unstored: u64,
    too_late: u64,
    replays: u64,
}

impl Explained {
    fn explain(&mut self, run: &Run, first: &Receipt, again: &Receipt) -> bool {
        let replayed = |receipt: &Receipt| run.delivery(receipt.delivery).is_some_and(|one| one.is_replay);
        if again.delivery != first.delivery && (replayed(again) || replayed(first)) {
            self.replays += 1;
            return true;
        }
        match why_repeated(run, first, again.t) {
            Some(Why::Outage(index)) => {
                *self.by_outage.entry(index).or_default() += 1;
                let answered = run.faults.outages[index].from.saturating_sub(first.end);
                self.unstored = self.unstored.max(answered);
            }
            Some(Why::AnsweredTooLate) => self.too_late += 1,
            None => return false,
        }
        true
    }

    fn tell(&self, verdict: &mut Verdict) {
        let (sum, crashes) = (self.by_outage.values().sum::<u64>(), self.by_outage.len());
        let most = self.by_outage.values().max().copied().unwrap_or(0);
        let unstored = self.unstored / MILLI;
        verdict.note(
            sum,
            &format!("explained by {crashes} faults, at most {most} by one, answered at most {unstored} ms before it"),
        );
        verdict.note(self.too_late, "explained: answered when the sender had given up");
        verdict.note(self.replays, "explained: replays");
    }
}
