//! From attempts to samples: what counts, what is held back, and what an incident counts for.

use super::incident::{Incident, Watch};
use super::learned::Learned;
use super::{Call, ChangeReason, Sample, TimeoutMode, Timeouts};
use crate::time::Millis;

impl Timeouts {
    /// Takes one attempt into account. Says why the timeout changed, if it did.
    pub(super) fn take(&mut self, call: Call<'_>, sample: Sample) -> Option<ChangeReason> {
        match sample {
            Sample::Answered { elapsed, probe } => self.answered(call, elapsed, probe),
            // A probe's failure is one while the breaker is open.
            Sample::Failed { probe: true, .. } | Sample::TimedOut { probe: true, .. } => None,
            Sample::Failed { elapsed, probe: false } => self.hold_back(call, |held| held.failed(elapsed)),
            Sample::TimedOut { timeout, probe: false } => {
                self.hold_back(call, |held| held.timed_out(timeout))
            }
            Sample::TimedOutUnguarded { timeout } => {
                self.watch.close();
                let released = self.release(call);
                self.note_sample(call);
                self.latencies.today(call.now, call.params).record_censored(timeout);
                self.count_timeouts(call, 1, timeout).or(released)
            }
        }
    }

    fn answered(&mut self, call: Call<'_>, elapsed: Millis, probe: bool) -> Option<ChangeReason> {
        if probe {
            self.watch.close();
        }
        let released = self.release(call);
        self.note_sample(call);
        self.latencies.today(call.now, call.params).record(elapsed);
        self.count(false);
        if probe && call.mode == TimeoutMode::Adaptive && elapsed > self.current(call) {
            return self.lengthen(call, call.params.computed(elapsed), ChangeReason::SlowProbe).or(released);
        }
        // It may be the one that makes the attempts enough to see a spike.
        self.answer_spike(call).or(released)
    }

    /// Keeps a failure back until it is known whether the breaker opens on it.
    fn hold_back(&mut self, call: Call<'_>, add: impl FnOnce(&mut Incident)) -> Option<ChangeReason> {
        let Watch::Closed(held) = &mut self.watch else { return None };
        add(held);
        if held.attempts() <= call.params.incident_limit {
            return None;
        }
        // The breaker has not opened on a run this long, so it is not treated as an outage: each failure counts. Otherwise a
        // destination that became slow for good would stay locked out if its breaker is set never to open.
        let held = std::mem::take(held);
        self.note_sample(call);
        held.add_each_to(self.latencies.today(call.now, call.params));
        self.count_incident(call, &held, held.timeouts())
    }

    /// A good answer came: what was held back before it was an incident, but no outage.
    fn release(&mut self, call: Call<'_>) -> Option<ChangeReason> {
        let mut held = self.watch.take_held()?;
        self.note_sample(call);
        held.add_as_one_to(self.latencies.today(call.now, call.params));
        let reason = self.count_incident(call, &held, held.timeouts().min(1));
        held.clear();
        self.watch = Watch::Closed(held);
        reason
    }

    fn count_incident(&mut self, call: Call<'_>, held: &Incident, timeouts: u32) -> Option<ChangeReason> {
        for _ in 0..held.answers() {
            self.count(false);
        }
        self.count_timeouts(call, timeouts, held.longest())
    }

    /// Counts new timeouts, the longest of which was `longest`, and looks whether they change anything.
    fn count_timeouts(&mut self, call: Call<'_>, timeouts: u32, longest: Millis) -> Option<ChangeReason> {
        // An attempt that started under a shorter timeout says nothing about the one in force: with many in flight,
        // one growth would else bring on the next.
        if timeouts == 0 || longest < self.current(call) {
            return None;
        }
        for _ in 0..timeouts {
            self.count(true);
        }
        self.take_back_step(call).or_else(|| self.answer_spike(call))
    }

    fn count(&mut self, timed_out: bool) {
        self.recent.push(timed_out);
        if let Some(learned) = &mut self.learned {
            learned.tally.count(timed_out);
        }
    }

    /// There is a sample now. The first one begins what is learned.
    fn note_sample(&mut self, call: Call<'_>) {
        match &mut self.learned {
            Some(learned) => learned.last_sample_at = call.now,
            None => self.learned = Some(Learned::since(call.now, call.params)),
        }
    }
}
