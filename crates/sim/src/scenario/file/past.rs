//! A destination's own past, played again: what came in, and how the destination behaved, under a policy that it might have had.

use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};

use super::figures::Figures;
use super::tally::Tally;
use crate::run::{Commit, Destination, Faults, Setup, Sim, Storage};
use crate::traffic::Source;
use crate::world::Model;

/// One destination alone on its node: its limits are its own.
const SLOTS: u32 = 2_000;
/// Steps in which a run is carried on, so that it can be called off between two.
const PARTS: i64 = 96;

/// What a destination saw in some time.
#[derive(Clone, Debug)]
pub struct Past {
    /// From when.
    pub start: Timestamp,
    /// For how long events came in.
    pub length: Millis,
    /// How long what is left then is given.
    pub drain: Millis,
    /// How the destination behaved.
    pub model: Model,
    /// What came in.
    pub sources: Vec<Source>,
}

impl Past {
    /// Plays it under a policy. The same seed gives the same figures; `None`: `go_on` said no before the end.
    pub fn play(&self, policy: Policy, seed: u64, mut go_on: impl FnMut() -> bool) -> Option<Figures> {
        let setup = Setup {
            seed,
            start: self.start,
            slots: SLOTS,
            commit: Commit::Instant,
            storage: Storage::Memory,
            destinations: vec![Destination {
                name: "destination".to_owned(),
                account: 0,
                policy,
                model: self.model.clone(),
            }],
            sources: self.sources.clone(),
            faults: Faults::default(),
        };
        let mut sim = Sim::new(setup, Tally::new(1));
        for part in 0..PARTS {
            let at = |part: i64| self.length.scaled(part, PARTS);
            sim.run_for(at(part + 1) - at(part));
            if !go_on() {
                return None;
            }
        }
        sim.run_until_quiet(self.drain);
        let open = sim.dispatcher().lanes().first().map_or(0, |lane| sim.backing().open_count(lane.id()));
        let figures = sim.observer.figures(|_| open, std::iter::once(("destination", "account")));
        figures.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};

    use super::*;
    use crate::traffic::{Arrivals, Template};
    use crate::world::Latency;

    #[test]
    fn a_rate_limit_makes_a_burst_wait() {
        let start = Timestamp::from_millis(1_800_000_000_000);
        let past = Past {
            start,
            length: Millis::hours(1),
            drain: Millis::hours(1),
            model: Model::healthy(Latency::Constant { ms: 20.0 }),
            sources: vec![Source {
                destination: 0,
                template: Template::new("order.paid"),
                arrivals: Arrivals::Recorded { at: vec![start + Millis::minutes(1); 60] },
            }],
        };
        let free = past.play(Policy::default(), 1, || true).unwrap();
        let limit = RateLimit { quota: Quota::new(10, Per::Minute, Some(1)).unwrap(), mode: RateMode::Fixed };
        let limited = past.play(Policy { rate_limit: Some(limit), ..Policy::default() }, 1, || true).unwrap();
        assert_eq!((free.ends.delivered, limited.ends.delivered), (60, 60));
        assert!(free.longest_wait_ms < Some(5_000), "{free:?}");
        assert!(limited.longest_wait_ms > Some(300_000), "{limited:?}");
        assert_eq!(limited.longest_wait_reason, Some("rate_limited"));
        assert!(past.play(Policy::default(), 1, || false).is_none());
    }
}
