//! I2: nothing comes that was not published, nor altered, nor where it does not belong; signed with a secret that is valid
//! then, and stamped with the time of its attempt.

use std::collections::HashSet;

use crate::names::Name;
use crate::run::{Digest, MILLI, Receipt, Run, SECOND, Signed};
use crate::verdict::Verdict;

/// The stamp is that of the attempt, which may wait so long for its connection.
const STAMPED_WITHIN_MS: i64 = 2_000;
/// A node that was frozen may have stamped a request so long before it sent it.
const FROZEN_FOR: u64 = 120 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I2", "no phantom, intact, signed, stamped");
    let unknown = Unknown::new(run);
    let (mut came, mut unsigned, mut wrapped) = (0, 0, 0);
    for receipt in &run.receipts {
        verdict.judge();
        let known = run.accepted(receipt.event).map(|accepted| run.sent(accepted));
        if let Some(sent) = known {
            wrapped += u64::from(receipt.sha.is_none());
            let belongs = receipt.destination.is_some_and(|destination| run.may_get(destination, sent));
            let what = if !belongs {
                "came where it does not belong"
            } else if receipt.event_type != sent.event_type {
                "came with another type than it was published with"
            } else if receipt.sha.is_some_and(|sha| sha != sent.sha) {
                "came with other bytes than were published"
            } else {
                ""
            };
            if !what.is_empty() {
                verdict.wrong(|| format!("{} {what}", run.show(receipt)));
            }
        } else if unknown.explains(receipt) {
            came += 1;
        } else {
            verdict.wrong(|| format!("{}: nobody published that", run.show(receipt)));
        }
        unsigned += u64::from(receipt.signed == Signed::Unknown);
        if !is_signed(run, receipt) {
            verdict.wrong(|| format!("{} is not signed with a secret that is valid then", run.show(receipt)));
        }
        if !is_stamped(run, receipt) {
            let (stamp, wall) = (receipt.timestamp, receipt.wall_ms.unwrap_or(0));
            verdict.wrong(|| format!("{} is stamped {stamp}, at {wall} ms", run.show(receipt)));
        }
    }
    verdict.note(came, "came of publications that were never answered");
    verdict.note(unsigned, "without body or secrets in the history: signature not judged");
    verdict.note(wrapped, "in an envelope, without body: bytes not judged");
    verdict
}

/// Events that may have been accepted though nobody was told.
struct Unknown(HashSet<(Name, Digest)>, HashSet<Name>);

impl Unknown {
    fn new(run: &Run) -> Self {
        let sent = run.sent.iter().filter(|sent| run.publications[sent.publication as usize].is_unknown());
        let all: HashSet<(Name, Digest)> = sent.map(|sent| (sent.event_type, sent.sha)).collect();
        let types = all.iter().map(|(event_type, _)| *event_type).collect();
        Self(all, types)
    }
    fn explains(&self, receipt: &Receipt) -> bool {
        match receipt.sha {
            Some(sha) => self.0.contains(&(receipt.event_type, sha)),
            None => self.1.contains(&receipt.event_type),
        }
    }
}

fn is_signed(run: &Run, receipt: &Receipt) -> bool {
    let (Signed::With(secrets), Some(destination)) = (receipt.signed, receipt.destination) else {
        return true;
    };
    let all = (0..).zip(&run.destinations[destination as usize].secrets);
    let mut used = all.filter(|(bit, _)| secrets & 1_u8.checked_shl(*bit).unwrap_or(0) != 0);
    used.any(|(_, secret)| {
        let ended = receipt.t > secret.until.saturating_add(run.jitter)
            && !run.faults.clock_was_set(secret.replaced_at, receipt.t);
        secret.from <= receipt.t && !ended
    })
}

fn is_stamped(run: &Run, receipt: &Receipt) -> bool {
    let Some(true_ms) = receipt.wall_ms else { return true };
    let most = STAMPED_WITHIN_MS + i64::try_from(run.jitter / MILLI).unwrap_or(0);
    let from = receipt.timestamp.saturating_mul(1_000);
    let near = |wall: i64| wall - (from + 999) <= most && from - wall <= most;
    run.walls(receipt.t, true_ms).into_iter().any(near)
        || run.faults.is_frozen(receipt.t.saturating_sub(FROZEN_FOR), receipt.t)
}
