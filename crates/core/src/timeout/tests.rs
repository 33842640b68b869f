//! The rules of the adaptive timeout, one by one. The laws and the sixty days of a fleet are in files of their own.

mod clock;
mod fleet;
mod growth;
mod laws;
mod outages;
mod steps;

use super::*;

/// One destination on a clock that is moved by hand, starting on 2026-01-01.
#[derive(Clone, Debug, PartialEq)]
struct Bench {
    timeouts: Timeouts,
    mode: TimeoutMode,
    params: TimeoutParams,
    now: Timestamp,
    /// All that changed so far.
    changes: Vec<TimeoutChange>,
}

impl Bench {
    fn new() -> Self {
        Self {
            timeouts: Timeouts::new(),
            mode: TimeoutMode::Adaptive,
            params: TimeoutParams::default(),
            now: Timestamp::parse("2026-01-01T09:30:00Z").unwrap(),
            changes: Vec::new(),
        }
    }
    fn wait(&mut self, span: Millis) {
        self.now = self.now + span;
    }
    fn observe(&mut self, sample: Sample) -> Option<TimeoutChange> {
        let change = self.timeouts.observe(self.now, &self.mode, &self.params, sample);
        self.changes.extend(change);
        change
    }
    fn answer(&mut self, ms: i64) -> Option<TimeoutChange> {
        self.observe(Sample::Answered { elapsed: Millis::new(ms), probe: false })
    }
    fn answers(&mut self, count: usize, ms: i64) {
        for _ in 0..count {
            self.answer(ms);
        }
    }
    /// An ordinary attempt that the timeout in force ends.
    fn time_out(&mut self) -> Option<TimeoutChange> {
        let timeout = Millis::new(self.ms());
        self.observe(Sample::TimedOut { timeout, probe: false })
    }
    /// An attempt to a destination that needs `ms`: answered or timed out, as the timeout in force has it.
    fn attempt(&mut self, ms: i64) -> Option<TimeoutChange> {
        if ms <= self.ms() { self.answer(ms) } else { self.time_out() }
    }
    fn recompute(&mut self) -> Option<TimeoutChange> {
        let change = self.timeouts.recompute(self.now, &self.mode, &self.params);
        self.changes.extend(change);
        change
    }
    /// A day with `count` attempts, evenly spread, each needing what `latency` says for its number.
    fn day(&mut self, count: i64, latency: impl Fn(i64) -> i64) {
        let end = self.now + Millis::days(1);
        for number in 0..count {
            self.attempt(latency(number));
            self.wait(Millis::days(1).scaled(1, count + 1));
        }
        self.now = end;
        self.recompute();
    }
    fn ms(&self) -> i64 {
        self.timeouts.in_force(&self.mode, &self.params).get()
    }
    fn report(&self) -> TimeoutReport {
        self.timeouts.report(&self.mode, &self.params)
    }
    fn reasons(&self) -> Vec<ChangeReason> {
        self.changes.iter().map(|change| change.reason).collect()
    }
}

fn change(from: i64, to: i64, reason: ChangeReason) -> Option<TimeoutChange> {
    Some(TimeoutChange { from: Millis::new(from), to: Millis::new(to), reason })
}

#[test]
fn the_mode_decides_what_attempts_and_probes_get() {
    let table = [
        (TimeoutMode::Adaptive, 10_000, 30_000),
        (TimeoutMode::Default, 10_000, 10_000),
        (TimeoutMode::pinned(1).unwrap(), 1_000, 1_000),
        (TimeoutMode::pinned(120).unwrap(), 120_000, 120_000),
    ];
    let (timeouts, params) = (Timeouts::new(), TimeoutParams::default());
    for (mode, ordinary, probe) in table {
        assert_eq!(timeouts.in_force(&mode, &params).get(), ordinary, "{mode:?}");
        assert_eq!(timeouts.for_probe(&mode, &params).get(), probe, "{mode:?}");
    }
    for refused in [0, 121, -1, i64::MAX] {
        let fault = TimeoutMode::pinned(refused).unwrap_err();
        assert_eq!((fault.field.as_str(), fault.allowed.as_str()), ("timeout_seconds", "1 to 120"));
    }
}

#[test]
fn the_built_in_parameters_are_sound_and_wrong_ones_are_named() {
    assert_eq!(TimeoutParams::default().faults(), []);
    let wrong = TimeoutParams {
        default: Millis::seconds(40),
        shrink_permille: 1_000,
        window_days: 0,
        ..TimeoutParams::default()
    };
    let fields: Vec<String> = wrong.faults().into_iter().map(|fault| fault.field).collect();
    assert_eq!(fields, ["default", "window_days", "shrink_permille"]);
    assert_eq!(wrong.faults()[0].to_string(), "`default` is 40 s; allowed: 1 s to 30 s");
}

#[test]
fn the_report_shows_what_was_computed() {
    let mut bench = Bench::new();
    let before = bench.report();
    assert_eq!(
        (before.p99_ms, before.sample_count, before.computed_at, before.target_ms),
        (None, 0, None, None)
    );
    bench.answers(200, 4_200);
    bench.wait(Millis::days(1));
    bench.recompute();
    let report = bench.report();
    // The article's example, 4,200 ms · 1.5 + 500 ms = 6,800 ms, at the upper edge of the bin.
    assert_eq!(report.p99_ms, Some(Millis::new(4_223)));
    assert_eq!(report.target_ms, Some(Millis::new(6_834)));
    assert_eq!((report.ms.get(), report.sample_count, report.computed_at), (7_500, 200, Some(bench.now)));
}

#[test]
fn the_next_step_is_taken_when_and_as_it_was_told() {
    let mut bench = Bench::new();
    bench.answers(200, 80);
    assert_eq!(bench.report().next_step, None, "nothing was computed yet");
    bench.wait(Millis::days(1));
    bench.recompute();
    for shorter in [5_625, 4_218, 3_163] {
        let told = bench.report().next_step.expect("there is more to shorten");
        assert_eq!(told.to.get(), shorter);
        while bench.now + Millis::days(1) < told.at {
            bench.day(200, |_| 80);
            assert_eq!(bench.report().next_step, Some(told), "an ordinary day changes nothing");
        }
        bench.now = told.at;
        bench.recompute();
        assert_eq!(bench.ms(), shorter);
    }
    bench.mode = TimeoutMode::Default;
    assert_eq!(bench.report().next_step, None);
}

#[test]
fn a_destination_in_default_mode_is_watched_but_not_touched() {
    let mut bench = Bench::new();
    bench.mode = TimeoutMode::Default;
    for _ in 0..20 {
        bench.day(200, |_| 80);
    }
    assert_eq!((bench.ms(), bench.changes.len()), (10_000, 0));
    assert_eq!((bench.report().p99_ms, bench.report().target_ms), (Some(Millis::new(80)), None));
    bench.mode = TimeoutMode::Adaptive;
    assert_eq!(bench.ms(), 10_000, "adaptive starts from the default");
    bench.day(200, |_| 80);
    assert_eq!(bench.ms(), 7_500);
}

#[test]
fn a_spike_in_default_mode_leaves_nothing_to_adaptive() {
    let mut bench = Bench::new();
    bench.mode = TimeoutMode::Default;
    bench.answers(20, 80);
    for _ in 0..2 {
        bench.observe(Sample::TimedOutUnguarded { timeout: Millis::seconds(10) });
    }
    bench.mode = TimeoutMode::Adaptive;
    assert_eq!(bench.ms(), 10_000);
}

#[test]
fn unpinning_starts_from_the_default_again() {
    let mut bench = Bench::new();
    bench.day(200, |_| 80);
    assert_eq!(bench.ms(), 7_500);
    bench.mode = TimeoutMode::pinned(3).unwrap();
    bench.day(200, |_| 80);
    assert_eq!(bench.ms(), 3_000);
    bench.mode = TimeoutMode::Adaptive;
    assert_eq!(bench.ms(), 10_000);
    bench.timeouts.reset();
    assert_eq!(
        (bench.ms(), bench.report().sample_count, bench.timeouts.next_recompute_at()),
        (10_000, 0, None)
    );
}

#[test]
fn what_was_stored_goes_on_where_it_was() {
    let mut bench = Bench::new();
    for _ in 0..12 {
        bench.day(150, |_| 80);
    }
    let days: Vec<(i32, Vec<u8>)> = bench.timeouts.days().collect();
    assert_eq!(days.len(), 8, "seven days and the current one");
    let stored = days.iter().map(|(day, bytes)| (*day, bytes.as_slice()));
    let restored = Timeouts::restore(bench.timeouts.learned().cloned(), stored).unwrap();
    assert_eq!(restored.report(&bench.mode, &bench.params), bench.report());
    assert_eq!(restored.days().collect::<Vec<_>>(), days);

    bench.timeouts = restored;
    for _ in 0..3 {
        bench.day(150, |_| 80);
    }
    assert_eq!(bench.ms(), 4_218, "the third step comes on its day");
    assert!(Timeouts::restore(None, [(20_000, &[9_u8, 9][..])]).is_err());
}
