//! How many requests a destination's limit allows, also while it is changed. Where either of two limits may be in force,
//! the more generous counts.

use crate::history::policy::RateLimit;
use crate::run::SECOND;
use crate::run::changes::Timeline;

/// A token, in the unit of the sums: every period divides a day, so that a nanosecond gains a whole number.
pub(super) const TOKEN: i128 = 86_400 * SECOND as i128;

/// What is allowed from a moment on, up to the next of these.
struct Step {
    from: u64,
    /// None: there may be no limit.
    limit: Option<Limit>,
    /// The tokens gained until then, since the first.
    gained: i128,
}

#[derive(Clone, Copy)]
struct Limit {
    per_day: i128,
    burst: i128,
}

/// What a destination allows over time.
pub(super) struct Allowance {
    steps: Vec<Step>,
    /// The highest rate of all.
    fastest: i128,
}

/// Between which two the bound is broken by most.
pub(super) struct Worst {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Allowed at once when the first of them began.
    pub(super) burst: i128,
    /// Gained between the two, in the unit of the sums.
    pub(super) gained: i128,
    /// By how much, likewise.
    pub(super) over: i128,
}

impl Allowance {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut turns: Vec<u64> =
            timeline.phases().iter().flat_map(|phase| [phase.from, phase.certain]).collect();
        turns.sort_unstable();
        turns.dedup();
        let limit = |rate: RateLimit| Limit { per_day: rate.per_day(), burst: rate.burst() };
        let limit_at = |at: u64| {
            let all = timeline.possible(at, at).map(|policy| policy.rate_limit.map(limit));
            all.reduce(|one, other| one.zip(other).map(|(one, other)| one.or(other))).flatten()
        };
        Self::new(turns.into_iter().map(|at| (at, limit_at(at))))
    }

    fn new(limits: impl IntoIterator<Item = (u64, Option<Limit>)>) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        for (from, limit) in limits {
            let gained = steps.last().map_or(0, |last| last.gained_by(from));
            steps.push(Step { from, limit, gained });
        }
        let fastest =
            steps.iter().filter_map(|step| step.limit).map(|limit| limit.per_day).max().unwrap_or(0);
        Self { steps, fastest }
    }

    /// What may be in force at some time between two moments, ends included.
    fn between(&self, from: u64, to: u64) -> &[Step] {
        let first = self.steps.partition_point(|step| step.from <= from).saturating_sub(1);
        let last = self.steps.partition_point(|step| step.from <= to);
        &self.steps[first..last.max(first)]
    }

    /// Whether there is a limit for certain, all the time between two moments.
    pub(super) fn is_limited(&self, from: u64, to: u64) -> bool {
        self.between(from, to).iter().all(|step| step.limit.is_some())
    }

    /// The tokens gained by a moment.
    fn gained(&self, at: u64) -> i128 {
        self.between(at, at).last().map_or(0, |step| step.gained_by(at))
    }

    /// The most that may be there at once at some time between two moments.
    fn burst(&self, from: u64, to: u64) -> i128 {
        self.between(from, to)
            .iter()
            .filter_map(|step| step.limit)
            .map(|limit| limit.burst)
            .max()
            .unwrap_or(0)
    }

    /// Between which two of these, in order, the bound is broken by most, if each may have begun up to `slack` before, and the
    /// time between two is longer than it seems by as much as what is told with them differs.
    pub(super) fn worst(&self, times: &[(u64, i128)], slack: u64) -> Option<Worst> {
        let mut least: Option<(i128, usize)> = None;
        let mut worst: Option<(i128, usize, usize)> = None;
        for (index, (at, longer)) in times.iter().enumerate() {
            let (place, longer) = (index as i128 * TOKEN, self.fastest * longer);
            let earliest = at.saturating_sub(slack);
            let burst = self.burst(earliest, *at).saturating_mul(TOKEN);
            let before = (place - self.gained(earliest) - longer).saturating_add(burst);
            if least.is_none_or(|(least, _)| before < least) {
                least = Some((before, index));
            }
            let (lowest, from) = least.unwrap_or((before, index));
            let over = (place + TOKEN - self.gained(*at) - longer).saturating_sub(lowest);
            if over > 0 && worst.is_none_or(|(most, ..)| over > most) {
                worst = Some((over, from, index));
            }
        }
        worst.map(|(over, from, to)| {
            let earliest = times[from].0.saturating_sub(slack);
            let longer = self.fastest * (times[to].1 - times[from].1);
            let gained = self.gained(times[to].0) - self.gained(earliest) + longer;
            Worst { from, to, burst: self.burst(earliest, times[from].0), gained, over }
        })
    }
}

impl Step {
    fn gained_by(&self, at: u64) -> i128 {
        let per_day = self.limit.map_or(0, |limit| limit.per_day);
        self.gained.saturating_add(per_day.saturating_mul(i128::from(at.saturating_sub(self.from))))
    }
}

impl Limit {
    /// What either of two allows.
    fn or(self, other: Self) -> Self {
        Self { per_day: self.per_day.max(other.per_day), burst: self.burst.max(other.burst) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::MILLI;
    use proptest::collection::vec;

    /// Limits that change, at most so long after one another.
    fn allowance(limits: &[(u64, i128, i128)]) -> Allowance {
        let steps = limits.iter().scan(0, |at, (gap, per_minute, burst)| {
            let from = *at;
            *at += gap * MILLI;
            Some((from, Some(Limit { per_day: per_minute * 1_440, burst: *burst })))
        });
        Allowance::new(steps)
    }

    fn moments(gaps: &[u64]) -> Vec<(u64, i128)> {
        let at = gaps.iter().scan(0, |at, gap| {
            *at += gap * MILLI;
            Some((*at, 0))
        });
        at.collect()
    }

    /// The bound by its words: every pair.
    fn by_pairs(allowance: &Allowance, times: &[(u64, i128)]) -> bool {
        (0..times.len()).all(|j| {
            (0..=j).all(|i| {
                let gained = allowance.gained(times[j].0) - allowance.gained(times[i].0);
                (j - i + 1) as i128 * TOKEN <= allowance.burst(times[i].0, times[i].0) * TOKEN + gained
            })
        })
    }

    proptest::proptest! {
        #[test]
        fn one_pass_is_the_bound_for_every_pair(
            gaps in vec(0_u64..3_000, 1..60), limits in vec((1_u64..20_000, 1_i128..120, 1_i128..6), 1..5),
        ) {
            let (allowance, times) = (allowance(&limits), moments(&gaps));
            proptest::prop_assert_eq!(allowance.worst(&times, 0).is_none(), by_pairs(&allowance, &times));
        }

        #[test]
        fn a_bucket_that_no_change_fills_keeps_the_bound(
            gaps in vec(0_u64..3_000, 1..60), limits in vec((1_u64..20_000, 1_i128..120, 1_i128..6), 1..5),
        ) {
            let allowance = allowance(&limits);
            let mut tokens = i128::MAX;
            let mut seen = 0;
            let mut taken = Vec::new();
            for (at, _) in moments(&gaps) {
                // Whatever was in force meanwhile has cut it down to its burst.
                for step in allowance.between(seen, at) {
                    let begin = step.from.max(seen);
                    tokens = tokens.saturating_add(allowance.gained(begin) - allowance.gained(seen));
                    seen = begin;
                    tokens = tokens.min(step.limit.unwrap().burst * TOKEN);
                }
                let now = allowance.burst(at, at) * TOKEN;
                tokens = (tokens + allowance.gained(at) - allowance.gained(seen)).min(now);
                seen = at;
                while tokens >= TOKEN {
                    tokens -= TOKEN;
                    taken.push((at, 0));
                }
            }
            proptest::prop_assert!(allowance.worst(&taken, 0).is_none());
        }
    }
}
