//! `[expect]`: what the writer of a file holds the run to.

use tidegate_core::invalid::Invalid;
use tidegate_core::time::{Millis, Timestamp};

use super::fields::Fields;
use super::figures::Total;
use crate::report::Finding;
use crate::words::{count, moment, percent, span};

/// What is expected of a run. What is not said is not checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectations {
    delivered_share: Option<f64>,
    dead_letter: Option<u64>,
    expired: Option<u64>,
    answers_429: Option<u64>,
    p99: Option<Millis>,
    drained_by: Option<Timestamp>,
}

/// The fields of `[expect]`.
pub(super) fn read(fields: &mut Fields<'_>, start: Timestamp) -> Expectations {
    Expectations {
        delivered_share: fields.number("delivered_share_at_least", 0.0, 1.0),
        dead_letter: fields.whole("dead_letter_at_most", 0, u64::MAX),
        expired: fields.whole("expired_at_most", 0, u64::MAX),
        answers_429: fields.whole("rate_limited_at_most", 0, u64::MAX),
        p99: fields.length("p99_at_most", Millis::new(1), Millis::days(366)),
        drained_by: drained_by(fields, start),
    }
}

fn drained_by(fields: &mut Fields<'_>, start: Timestamp) -> Option<Timestamp> {
    let by = fields.moment("drained_by", start)?;
    if by < start {
        fields.refuse(Invalid::new("drained_by", by, format!("not before `start`, which is {start}")));
        return None;
    }
    Some(by)
}

impl Expectations {
    /// One finding for each.
    pub(super) fn findings(&self, total: &Total) -> Vec<Finding> {
        let at_most = |what: &str, value: u64, most: u64| {
            Finding::check(what, count(value), format!("at most {}", count(most)), value <= most)
        };
        let share = self.delivered_share.map(|least| {
            let words = percent(total.ends.delivered, total.accepted);
            let holds = total.delivered_share() >= least;
            Finding::check("[expect] delivered", words, format!("at least {}%", least * 100.0), holds)
        });
        let p99 = self.p99.map(|most| {
            let p99 = total.p99();
            let words = p99.map_or("nothing was delivered".to_owned(), span);
            let holds = p99.is_some_and(|p99| p99 <= most);
            Finding::check(
                "[expect] acceptance to delivery, p99",
                words,
                format!("at most {}", span(most)),
                holds,
            )
        });
        let drained = self.drained_by.map(|by| {
            let drained_at = total.backlog.drained_at;
            let words = drained_at.map_or("not drained".to_owned(), moment);
            let holds = drained_at.is_some_and(|at| at <= by);
            Finding::check("[expect] largest backlog drained", words, format!("by {}", moment(by)), holds)
        });
        [
            share,
            self.dead_letter.map(|most| at_most("[expect] dead letters", total.ends.dead_letter, most)),
            self.expired.map(|most| at_most("[expect] expired", total.ends.expired, most)),
            self.answers_429.map(|most| at_most("[expect] answers 429", total.answers("rate_limited"), most)),
            p99,
            drained,
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
