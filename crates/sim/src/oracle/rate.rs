//! Rate: in any interval of `T`, ends included, at most `burst + rate · T` requests begin at a destination.
//!
//! Checked for every pair of requests `i ≤ j`, without a bucket: `j - i + 1 ≤ burst + rate · (tⱼ - tᵢ)`. With the parts
//! of `i` on one side that is one comparison per request, against the least `i · token - rate · tᵢ` so far. Whole numbers
//! throughout. Time is the monotonic clock's, which a crash does not stop: a stop must never add tokens.

use tidegate_core::rate::Quota;
use tidegate_core::time::{Millis, Mono};

use super::Violations;
use crate::run::{Note, Observer, Setup, View};

/// A token in the unit of the sums: a day's milliseconds. Every period that a rate is written for divides a day, so the
/// gain per millisecond is the whole number of tokens per day.
const TOKEN: i128 = Millis::days(1).get() as i128;

/// Watches the rate of every destination.
#[derive(Clone, Debug)]
pub struct Rate {
    lanes: Vec<Option<Bound>>,
    slack: Millis,
    violations: Violations,
}

#[derive(Clone, Debug)]
struct Bound {
    per_day: i128,
    burst: i128,
    starts: i128,
    least: Option<i128>,
}

impl Rate {
    /// For the destinations of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let bound = |quota: &Quota| Bound {
            #[expect(clippy::cast_possible_truncation, reason = "at most 864,000,000 a day")]
            per_day: (quota.per_minute() * 1_440.0).round() as i128,
            burst: i128::from(quota.burst()),
            starts: 0,
            least: None,
        };
        let limits = setup.destinations.iter().map(|destination| &destination.policy.rate_limit);
        let lanes = limits.map(|limit| limit.as_ref().map(|limit| bound(&limit.quota))).collect();
        Self { lanes, slack: Millis::ZERO, violations: Violations::default() }
    }
    /// The same where clocks differ by so much: `burst + rate · (T + slack)`.
    #[must_use]
    pub fn within(mut self, slack: Millis) -> Self {
        self.slack = slack;
        self
    }

    /// What was wrong, if anything: the first few.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
    /// How often.
    pub const fn count(&self) -> u64 {
        self.violations.count()
    }
}

impl Bound {
    /// A request begins: by how much, in [`TOKEN`]s, are there now more than allowed? Negative or zero if there are not.
    fn excess(&mut self, at: Mono) -> i128 {
        let gained = self.per_day * i128::from(at.as_millis());
        let before = self.starts * TOKEN - gained;
        let least = self.least.map_or(before, |least| least.min(before));
        self.least = Some(least);
        self.starts += 1;
        self.starts * TOKEN - gained - least - self.burst * TOKEN
    }
}

impl Observer for Rate {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let Note::Sent(lane, sending) = note else { return };
        let Some(bound) = &mut self.lanes[lane.index()] else { return };
        let excess = bound.excess(view.now.mono) - bound.per_day * i128::from(self.slack.get());
        if excess > 0 {
            self.violations.add(|| {
                let over = excess as f64 / TOKEN as f64;
                format!(
                    "destination {}, sequence {}, at {}: {over:.3} requests too early for its rate",
                    lane.index(),
                    sending.place.sequence,
                    view.now.wall
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound, by its words: every pair.
    fn by_pairs(times: &[i64], per_day: i128, burst: i128) -> bool {
        (0..times.len()).all(|j| {
            (0..=j).all(|i| {
                (j - i + 1) as i128 * TOKEN <= burst * TOKEN + per_day * i128::from(times[j] - times[i])
            })
        })
    }

    proptest::proptest! {
        #[test]
        fn one_comparison_per_request_is_the_bound_for_every_pair(
            gaps in proptest::collection::vec(0_i64..3_000, 1..60), burst in 1_i128..6, per_minute in 1_i128..120,
        ) {
            let times: Vec<i64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let per_day = per_minute * 1_440;
            let mut bound = Bound { per_day, burst, starts: 0, least: None };
            let holds = times.iter().all(|at| bound.excess(Mono::from_millis(*at)) <= 0);
            proptest::prop_assert_eq!(holds, by_pairs(&times, per_day, burst));
        }
    }
}
