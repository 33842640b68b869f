//! I18: `/readyz` tells the truth: not ready while nothing can be acknowledged; and where it says ready, publishing works.

use crate::run::{Publication, Readiness, Run, SECOND};
use crate::verdict::Verdict;

/// Refused just before and just after: refused all the time between.
const BRACKET: u64 = 2 * SECOND;
/// After "ready", something is acknowledged within this time.
const WORKS_WITHIN: u64 = 5 * SECOND;

/// What is not answered for so long hangs, also with a slow disk.
const HANGS: u64 = 10 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I18", "health is true");
    if run.faults.nodes() > 1 {
        verdict.notes.push("several nodes: who refused is not in the history; not judged".to_owned());
        return verdict;
    }
    // No answer is as bad as a refusal, and told when its producer gave up.
    let mut answered: Vec<&Publication> =
        run.publications.iter().filter(|one| one.is_accepted() || one.is_unknown()).collect();
    answered.sort_by_key(|one| one.answered);
    for poll in run.readiness.iter().filter(|poll| poll.ready) {
        let next = answered.partition_point(|one| one.answered < poll.t);
        verdict.judge();
        if is_refusing(run, poll, &answered, next) {
            verdict.wrong(|| format!("ready at {}, while publications are refused", run.at(poll.t)));
        } else if never_works(run, poll, &answered[next..]) {
            verdict.wrong(|| {
                format!("ready at {}, but nothing is acknowledged in the next seconds", run.at(poll.t))
            });
        }
    }
    verdict
}

/// Whether what was refused just before, and sent and refused just after, leaves no time in which publishing worked. A disk
/// that fills up or is freed in between does, and so does a node that goes or comes.
fn is_refusing(run: &Run, poll: &Readiness, answered: &[&Publication], next: usize) -> bool {
    let refused = |one: &&&&Publication| !one.is_accepted() && one.answered.abs_diff(poll.t) <= BRACKET;
    let before = next.checked_sub(1).map(|before| &answered[before]).as_ref().filter(refused).copied();
    let after = answered.get(next).as_ref().filter(refused).copied().filter(|one| one.t >= poll.t);
    let Some((before, after)) = before.zip(after) else { return false };
    let between = before.t..=after.answered;
    let turned = |(from, to): &(u64, u64)| between.contains(from) || between.contains(to);
    !run.faults.full.iter().any(turned) && !run.faults.is_down(before.t, after.answered)
}

/// Whether everything that was sent in the next seconds was refused, and nothing happened to the node meanwhile.
fn never_works(run: &Run, poll: &Readiness, answered: &[&Publication]) -> bool {
    let until = poll.t.saturating_add(WORKS_WITHIN);
    if is_down(run, poll, until) || run.faults.full.iter().any(|(from, to)| *from <= until && *to >= poll.t) {
        return false;
    }
    let soon: Vec<_> =
        answered.iter().take_while(|one| one.answered <= until).filter(|one| one.t >= poll.t).collect();
    // One may have been refused for a reason of its own.
    soon.len() > 1 && soon.iter().all(|one| !one.is_accepted()) || all_hang(run, poll)
}

/// Whether everything that was sent in the next seconds was left without an answer, for long, with nobody hit meanwhile.
fn all_hang(run: &Run, poll: &Readiness) -> bool {
    let from = run.publications.partition_point(|one| one.t < poll.t);
    let until = poll.t.saturating_add(WORKS_WITHIN);
    let soon = || run.publications[from..].iter().take_while(|one| one.t <= until);
    soon().count() > 1
        && soon().all(|one| one.answered.saturating_sub(one.t) >= HANGS)
        && !is_down(run, poll, until.saturating_add(HANGS))
}

/// Whether the node was down at some time from the poll on, whose answer may be noted J after it was given.
fn is_down(run: &Run, poll: &Readiness, until: u64) -> bool {
    run.faults.is_down(poll.t.saturating_sub(run.jitter), until)
}
