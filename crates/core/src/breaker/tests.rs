use proptest::prelude::*;

use super::*;

fn id(n: u128) -> DeliveryId {
    DeliveryId::from_bits(n)
}

struct Bench {
    breaker: Breaker,
    policy: BreakerPolicy,
    now: i64,
}

impl Bench {
    fn new() -> Self {
        Self { breaker: Breaker::default(), policy: BreakerPolicy::default(), now: 0 }
    }
    fn gate(&self) -> BreakerGate {
        self.breaker.gate(Timestamp::from_millis(self.now))
    }
    fn result(&mut self, delivery: u128, bearing: Bearing) -> Option<BreakerChange> {
        let generation = self.breaker.generation();
        self.breaker.observe(&self.policy, Now::at(self.now), generation, id(delivery), bearing)
    }
    fn fail_until_open(&mut self) {
        for delivery in 0..5 {
            self.result(delivery, Bearing::Failure);
        }
        assert!(matches!(self.gate(), BreakerGate::OpenUntil(_)));
    }
}

#[test]
fn five_failures_of_two_deliveries_open_it() {
    let mut bench = Bench::new();
    for _ in 0..9 {
        assert_eq!(bench.result(1, Bearing::Failure), None, "one delivery alone may be at fault itself");
    }
    let mut bench = Bench::new();
    for n in 0..4 {
        assert_eq!(bench.result(n, Bearing::Failure), None);
    }
    let until = Timestamp::from_millis(30_000);
    assert_eq!(bench.result(1, Bearing::Failure), Some(BreakerChange::Opened { until }));
    assert_eq!(bench.gate(), BreakerGate::OpenUntil(until));
}

#[test]
fn half_of_ten_in_a_minute_opens_it() {
    let mut bench = Bench::new();
    for n in 0..9 {
        bench.now += 5_000;
        let bearing = if n % 2 == 0 { Bearing::Success } else { Bearing::Failure };
        assert_eq!(bench.result(n, bearing), None, "nine attempts are too few");
    }
    bench.now += 5_000;
    assert!(bench.result(9, Bearing::Failure).is_some());
}

#[test]
fn old_failures_and_neutral_answers_do_not_count() {
    let mut bench = Bench::new();
    for n in 0..40 {
        bench.now += 20_000;
        let bearing = if n % 2 == 0 { Bearing::Success } else { Bearing::Failure };
        assert_eq!(bench.result(n, bearing), None, "three a minute never make ten");
        assert_eq!(bench.result(n, Bearing::Neutral), None);
    }
}

#[test]
fn half_open_lets_one_probe_through_and_two_successes_close_it() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.now = 30_000;
    for expected in [None, Some(BreakerChange::Closed)] {
        assert_eq!(bench.gate(), BreakerGate::ForProbe);
        bench.breaker.probe_started();
        assert_eq!(bench.gate(), BreakerGate::AwaitsProbe);
        assert_eq!(bench.result(1, Bearing::Neutral), None, "a 429 is inconclusive");
        assert_eq!(bench.gate(), BreakerGate::ForProbe);
        bench.breaker.probe_started();
        assert_eq!(bench.result(2, Bearing::Success), expected);
    }
    assert_eq!(bench.gate(), BreakerGate::Closed);
}

#[test]
fn a_failed_probe_doubles_the_wait_up_to_the_limit_and_puts_it_out_of_step() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    let mut waits = vec![];
    for _ in 0..7 {
        let (since, until) = bench.breaker.open().unwrap();
        waits.push((until - since).get());
        bench.now = until.as_millis();
        bench.breaker.probe_started();
        bench.result(1, Bearing::Failure);
    }
    let doubled = [30, 60, 120, 240, 480, 600, 600].map(|seconds| seconds * 1_000);
    assert_eq!(waits[0], doubled[0], "the first one is exact");
    for (wait, doubled) in waits.iter().zip(doubled) {
        assert!((doubled..=doubled + doubled / 10).contains(wait), "{waits:?}");
    }
    assert_ne!(waits[5], waits[6], "what comes and goes must not meet every probe in one phase");
}

#[test]
fn results_of_before_the_change_change_nothing() {
    let mut bench = Bench::new();
    let before = bench.breaker.generation();
    bench.fail_until_open();
    for bearing in [Bearing::Success, Bearing::Failure] {
        let late = bench.breaker.observe(&bench.policy, Now::at(40_000), before, id(9), bearing);
        assert_eq!(late, None);
    }
    assert_eq!(bench.breaker.open().unwrap().1, Timestamp::from_millis(30_000));
}

#[test]
fn switched_off_it_never_opens() {
    let mut bench = Bench::new();
    bench.policy.enabled = false;
    for n in 0..100 {
        assert_eq!(bench.result(n, Bearing::Failure), None);
    }
}

#[test]
fn refused_policies_say_what_is_allowed() {
    let default = BreakerPolicy::default();
    for (policy, expected) in [
        (BreakerPolicy { failure_ratio: 0.0, ..default }, "`failure_ratio` is 0; allowed: above 0, up to 1"),
        (
            BreakerPolicy { failure_ratio: f64::NAN, ..default },
            "`failure_ratio` is NaN; allowed: above 0, up to 1",
        ),
        (BreakerPolicy { min_attempts: 0, ..default }, "`min_attempts` is 0; allowed: 1 to 10000"),
        (
            BreakerPolicy { max_open: Millis::seconds(10), ..default },
            "`max_open_seconds` is 10; allowed: 30 to 86400",
        ),
    ] {
        assert_eq!(policy.validated().unwrap_err().to_string(), expected);
    }
    assert_eq!(default.validated(), Ok(default));
}

proptest! {
    /// Whatever comes back, and however the clocks run: never two probes at once, and never one before its time.
    #[test]
    fn at_most_one_probe_is_out(steps in prop::collection::vec((0_i64..90_000, 0_u128..4, 0_usize..3), 1..200)) {
        let mut bench = Bench::new();
        let mut out = vec![];
        for (pass, delivery, bearing) in steps {
            bench.now += pass;
            match bench.gate() {
                BreakerGate::Closed => out.push((bench.breaker.generation(), false)),
                BreakerGate::ForProbe => {
                    let current = bench.breaker.generation();
                    prop_assert!(!out.contains(&(current, true)), "the last probe is still out");
                    bench.breaker.probe_started();
                    out.push((current, true));
                }
                BreakerGate::OpenUntil(_) | BreakerGate::AwaitsProbe => {}
            }
            if pass % 3 != 0 && !out.is_empty() {
                let (generation, _) = out.remove(usize::try_from(pass).unwrap() % out.len());
                let bearing = [Bearing::Success, Bearing::Failure, Bearing::Neutral][bearing];
                bench.breaker.observe(&bench.policy, Now::at(bench.now), generation, id(delivery), bearing);
            }
        }
    }
}
