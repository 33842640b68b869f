//! What a run of the fleet has shown, and what the adaptive one must show.

use tidegate_core::time::Millis;

use super::gauge::{Gauge, Outage};

/// The figures of one run, measured on the days 31 to 60 unless it says otherwise. `docs/scenarios.md` defines them.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Of all attempts, those that timed out although waiting longer would have brought a success.
    pub false_timeouts: f64,
    /// The median over the destinations of the timeout in force.
    pub median_timeout: Millis,
    /// Of all slot time, that of attempts that did not succeed.
    pub failed_capacity: f64,
    /// From the first attempt in an outage to the breaker's opening, in the mean.
    pub mean_detection: Millis,
    /// The same for the outages that hang.
    pub mean_hang_detection: Millis,
    /// Outages in which something was sent …
    pub outages_felt: usize,
    /// … and those in which the breaker opened.
    pub outages_detected: usize,
    /// Openings of a breaker without an outage.
    pub false_alarms: u64,
    /// What became of events for destinations that were slow for good by then.
    pub slow_for_good: SlowForGood,
    /// Deliveries that came to an end, in the whole run.
    pub deliveries: u64,
    /// Of these, the ones that were given up.
    pub dead: u64,
    /// Requests, in the whole run.
    pub attempts: u64,
}

/// What became of events for destinations that were slow for good by then.
#[derive(Clone, Debug, Default)]
pub struct SlowForGood {
    /// Delivered.
    pub delivered: u64,
    /// Given up.
    pub dead: u64,
    /// The longest from the acceptance of an event to the next success of any at its destination.
    pub locked_out: Millis,
}

impl Figures {
    pub(super) fn of(gauge: &Gauge) -> Self {
        let totals = &gauge.totals;
        let detected_after = || gauge.outages().filter_map(Outage::detected_after);
        let hanging = gauge.outages().filter(|outage| outage.hangs());
        Self {
            false_timeouts: totals.false_timeouts as f64 / totals.measured_attempts as f64,
            median_timeout: median(gauge.timeouts()),
            failed_capacity: totals.failed.get() as f64 / totals.busy.get() as f64,
            mean_detection: mean(detected_after()),
            mean_hang_detection: mean(hanging.filter_map(Outage::detected_after)),
            outages_felt: gauge.outages().filter(|outage| outage.felt()).count(),
            outages_detected: detected_after().count(),
            false_alarms: totals.false_alarms,
            slow_for_good: gauge.slow.clone(),
            deliveries: totals.deliveries,
            dead: totals.dead,
            attempts: totals.attempts,
        }
    }

    /// At most 0.3%.
    pub fn few_false_timeouts(&self) -> bool {
        self.false_timeouts <= 0.003
    }
    /// At most 3,200 ms.
    pub fn short_timeouts(&self) -> bool {
        self.median_timeout <= Millis::new(3_200)
    }
    /// At most 11%.
    pub fn little_wasted(&self) -> bool {
        self.failed_capacity <= 0.11
    }
    /// At most 14 s.
    pub fn quick_detection(&self) -> bool {
        self.mean_detection <= Millis::seconds(14)
    }
    /// Every event is delivered, and successes never stop for more than five minutes while events come.
    pub fn none_locked_out(&self) -> bool {
        let slow = &self.slow_for_good;
        slow.delivered > 0 && slow.dead == 0 && slow.locked_out <= Millis::minutes(5)
    }
}

/// The middle one; of an even number, the longer of the two in the middle.
fn median(times: impl Iterator<Item = Millis>) -> Millis {
    let mut times: Vec<Millis> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(Millis::ZERO)
}

fn mean(times: impl Iterator<Item = Millis>) -> Millis {
    let (sum, count) = times.fold((Millis::ZERO, 0), |(sum, count), time| (sum + time, count + 1));
    sum.scaled(1, count.max(1))
}
