//! What holds for any answers on any clock.

use proptest::prelude::*;

use super::*;
use crate::gate::Go;
use crate::id::DeliveryId;
use crate::lane::{LaneState, Report};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::rate::{Per, Quota, RateLimit, RateMode};
use crate::time::Now;

#[derive(Clone, Debug)]
enum Event {
    /// The clock, however it is read.
    Clock(i64),
    /// Time passes until the next start may be made, and it is.
    Turn,
    /// A start that asks nobody.
    Take,
    Passed,
    RateLimited(Millis),
    Stated(RateHint),
    Rebase,
}

fn any_length() -> impl Strategy<Value = Millis> {
    let ms = prop_oneof![0_i64..120_000, 0_i64..30 * 24 * HOUR, any::<i64>()];
    ms.prop_map(Millis::new)
}

fn any_hint() -> impl Strategy<Value = RateHint> {
    let count = || prop::option::of(prop_oneof![Just(0_u64), 0_u64..2_000, any::<u64>()]);
    let length = || prop::option::of(any_length());
    (count(), count(), length(), length()).prop_map(|(limit, remaining, reset, window)| RateHint {
        limit,
        remaining,
        reset,
        window,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => prop_oneof![0_i64..10 * HOUR, any::<i64>(), Just(i64::MIN), Just(i64::MAX)].prop_map(Event::Clock),
        20 => Just(Event::Turn),
        4 => Just(Event::Take),
        20 => Just(Event::Passed),
        4 => any_length().prop_map(Event::RateLimited),
        3 => any_hint().prop_map(Event::Stated),
        1 => Just(Event::Rebase),
    ]
}

proptest! {
    #[test]
    fn the_rate_stays_within_its_bounds_and_never_rises_with_a_429(events in prop::collection::vec(any_event(), 1..200)) {
        let mut pace = Pace::new(Mono::from_millis(0));
        let mut now = Mono::from_millis(0);
        for event in events {
            let before = pace.per_minute(now);
            match event {
                Event::Clock(ms) => now = Mono::from_millis(ms),
                Event::Turn => {
                    now = later(now, pace.wait(now).unwrap_or(Millis::ZERO));
                    pace.take(now);
                }
                Event::Take => pace.take(now),
                Event::Passed => pace.passed(),
                Event::RateLimited(wait) => {
                    pace.rate_limited(now, wait);
                    prop_assert!(pace.per_minute(now) <= before, "{} after {before}", pace.per_minute(now));
                }
                Event::Stated(hint) => {
                    pace.stated(now, &hint);
                    // Beyond this the clock's microseconds are at their limit, some 300,000 years on.
                    let counts = now.as_millis().unsigned_abs() < 1 << 53;
                    if let (Some(0), Some(reset), true) = (hint.remaining, hint.reset, counts) {
                        let asked = reset.clamp(Millis::ZERO, Millis::hours(24));
                        prop_assert!(pace.wait(now).unwrap_or(Millis::ZERO) >= asked);
                    }
                }
                Event::Rebase => pace.rebase(now),
            }
            let rate = pace.per_minute(now);
            prop_assert!((SLOWEST..=FASTEST).contains(&rate), "{rate}");
            if let Phase::Cruising { floor, ceiling } = pace.phase {
                prop_assert!(SLOWEST <= floor && floor < ceiling, "{floor} and {ceiling}: it would never rise");
            }
            if let Some(wait) = pace.wait(now) {
                prop_assert!(wait > Millis::ZERO);
            }
        }
    }

    /// Whatever is learned or stated: at most `burst + rate · T` starts, as the destination's owner wrote.
    #[test]
    fn the_written_quota_always_holds(
        max in 1_u64..300,
        burst in 1_u64..20,
        answers in prop::collection::vec((0_u8..8, any_hint()), 1..300),
    ) {
        let quota = Quota::new(max, Per::Minute, Some(burst)).unwrap();
        let limit = RateLimit { quota, mode: RateMode::Adaptive };
        let policy = Policy { rate_limit: Some(limit), ..Policy::default() };
        let mut now = Now::at(0);
        let mut lane = LaneState::new(&policy, now);
        let mut starts: Vec<i64> = Vec::new();
        for (kind, hint) in answers {
            while let Some(wait) = lane.token_wait(&policy, now.mono) {
                now = Now::at(now.wall.as_millis() + wait.get());
            }
            let go = Go { timeout: Millis::seconds(10), cut_short: false, probe: None };
            let attempt = lane.start(now, DeliveryId::from_bits(1), go);
            starts.push(now.wall.as_millis());
            let (outcome, rate_hint) = match kind {
                0 => (Outcome::RateLimited { retry_after: None }, None),
                1 => (Outcome::Success { status: 200 }, Some(hint)),
                _ => (Outcome::Success { status: 200 }, None),
            };
            let report = Report { outcome, elapsed: Millis::new(5), rate_hint };
            lane.finish(now, &policy, DeliveryId::from_bits(1), &attempt, &report);
        }
        for (first, from) in starts.iter().enumerate() {
            let last = starts.len() - 1;
            let most = |to: usize| burst as f64 + max as f64 * (starts[to] - from) as f64 / 60_000.0;
            for to in [first, (first + last) / 2, last] {
                prop_assert!((to - first + 1) as f64 <= most(to) + 1e-9);
            }
        }
    }
}
