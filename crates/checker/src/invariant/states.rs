//! I12: what is final stays so, and the count of attempts never falls, however often one looks.

use crate::history::State;
use crate::run::{Glimpse, NEVER, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I12", "states move on");
    for seen in run.glimpses.chunk_by(|one, other| one.delivery == other.delivery) {
        let rest = run.delivery(seen[0].delivery).map(|delivery| Glimpse {
            delivery: delivery.id,
            t: NEVER,
            state: delivery.state,
            attempts_count: Some(delivery.attempts_count),
        });
        let all: Vec<&Glimpse> = seen.iter().chain(rest.iter()).collect();
        for pair in all.windows(2) {
            verdict.judge();
            if let Some(what) = wrong(run, pair[0], pair[1]) {
                let (id, from, to) = (run.text(pair[0].delivery), run.at(pair[0].t), run.at(pair[1].t));
                verdict.wrong(|| format!("{id} {what}, between {from} and {to}"));
            }
        }
    }
    verdict
}

fn wrong(run: &Run, before: &Glimpse, after: &Glimpse) -> Option<String> {
    // Expiry is seen before it is written; with the clock set back, it is not seen any more.
    let unwritten = before.state == State::Expired && run.faults.clock_was_set(before.t, after.t);
    if before.state.is_final() && after.state != before.state && !unwritten {
        return Some(format!("was {:?} and then {:?}", before.state, after.state));
    }
    let (one, two) = before.attempts_count.zip(after.attempts_count)?;
    (two < one).then(|| format!("had {one} attempts and then {two}"))
}
