//! From samples to the timeout: the daily run, and what cannot wait for it.

use super::learned::{Estimate, Rollout};
use super::recent::{Recent, Tally};
use super::{Call, ChangeReason, TimeoutMode, Timeouts};
use crate::sketch::Quantile;
use crate::time::Millis;

impl Timeouts {
    /// The daily run, if it is due. Says why the timeout changed, if it did.
    pub(super) fn run_if_due(&mut self, call: Call<'_>) -> Option<ChangeReason> {
        let Call { now, mode, params } = call;
        let learned = self.learned.as_mut()?;
        if learned.is_ahead_of(now, params) {
            learned.heed_clock(now, params);
        }
        if mode != TimeoutMode::Adaptive {
            // A destination that comes back to adaptive starts from the default.
            (learned.timeout, learned.rollout) = (None, Rollout::Settled);
        }
        if now - learned.last_sample_at >= params.stale_after {
            self.reset();
            return Some(ChangeReason::Stale);
        }
        if now < learned.recompute_at {
            return None;
        }
        let percentile = self.estimate(call);
        let reason = if mode == TimeoutMode::Adaptive { self.follow(call, percentile) } else { None };
        let learned = self.learned.as_mut()?;
        learned.recompute_at = learned.next_run(now, params);
        reason
    }

    /// The share of timeouts rose after the step that is on trial: undoes it.
    pub(super) fn take_back_step(&mut self, call: Call<'_>) -> Option<ChangeReason> {
        let learned = self.learned.as_ref()?;
        let Rollout::Trial { baseline, before, .. } = learned.rollout else { return None };
        if !learned.tally.rose_since(before, call.params) {
            return None;
        }
        let reason = self.lengthen(call, baseline, ChangeReason::StepTakenBack)?;
        // The timeout from before the step goes on with its own tally.
        self.learned.as_mut()?.tally = before;
        Some(reason)
    }

    /// Too many of the most recent attempts timed out: lengthens without regard to the rest of the week, in which a
    /// destination that has just become slow looks fast.
    pub(super) fn answer_spike(&mut self, call: Call<'_>) -> Option<ChangeReason> {
        if call.mode != TimeoutMode::Adaptive || !self.recent.spikes(call.params) {
            return None;
        }
        // The same timeouts are not to ask again with each attempt.
        self.recent = Recent::default();
        let current = self.current(call);
        if current >= call.params.max {
            return None;
        }
        let computed = match self.estimate(call) {
            Quantile::At(p99) => call.params.computed(p99),
            Quantile::Empty | Quantile::AmongCensored { .. } => current,
        };
        self.lengthen(call, call.params.grown(current).max(computed), ChangeReason::Spike)
    }

    /// Applies `to` if it is longer. Nothing is shortened for a while after that.
    pub(super) fn lengthen(&mut self, call: Call<'_>, to: Millis, why: ChangeReason) -> Option<ChangeReason> {
        if to <= self.current(call) {
            return None;
        }
        let learned = self.learned.as_mut()?;
        learned.timeout = Some(to);
        learned.rollout = Rollout::Waiting { until: call.now + call.params.step_every };
        learned.tally = Tally::default();
        self.recent = Recent::default();
        Some(why)
    }

    fn estimate(&mut self, call: Call<'_>) -> Quantile {
        let window = self.latencies.window(call.now, call.params);
        let percentile = window.quantile(call.params.percentile_permyriad);
        if let Some(learned) = &mut self.learned {
            learned.estimate = Some(Estimate { at: call.now, percentile });
        }
        percentile
    }

    /// Moves the timeout as the percentile asks for.
    fn follow(&mut self, call: Call<'_>, percentile: Quantile) -> Option<ChangeReason> {
        let current = self.current(call);
        match percentile {
            Quantile::Empty => None,
            Quantile::At(p99) => {
                let computed = call.params.computed(p99);
                if computed > current {
                    return self.lengthen(call, computed, ChangeReason::Slower);
                }
                self.step(call, current, computed)
            }
            Quantile::AmongCensored { beyond } => {
                let proven = self.latencies.timeouts() >= u64::from(call.params.min_timeouts);
                if beyond < current || !proven {
                    return None;
                }
                self.lengthen(call, call.params.grown(current), ChangeReason::PercentileTimedOut)
            }
        }
    }

    /// One step towards the shorter `computed`, if samples, age and roll-out allow it.
    fn step(&mut self, call: Call<'_>, current: Millis, computed: Millis) -> Option<ChangeReason> {
        let Call { now, params, .. } = call;
        let samples = self.latencies.samples();
        let learned = self.learned.as_mut()?;
        if learned.rollout.step_due(params).is_some_and(|due| now < due) {
            return None;
        }
        learned.rollout = Rollout::Settled;
        let to = params.shrunk(current).max(computed);
        let young = now - learned.first_sample_at < params.min_age;
        if young || samples < params.min_samples || to >= current {
            return None;
        }
        learned.timeout = Some(to);
        learned.rollout = Rollout::Trial { baseline: current, since: now, before: learned.tally };
        learned.tally = Tally::default();
        self.recent = Recent::default();
        Some(ChangeReason::Step)
    }
}
