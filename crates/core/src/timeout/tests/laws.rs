//! What holds for any destination, any answers and any clock.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Wait(i64),
    Answers(u16, i64),
    Failed(i64, bool),
    TimedOut(bool),
    Unguarded,
    Probe(i64),
    BreakerOpened,
    BreakerClosed,
    Recompute,
    Reset,
    Mode(TimeoutMode),
}

fn any_mode() -> impl Strategy<Value = TimeoutMode> {
    prop_oneof![
        6 => Just(TimeoutMode::Adaptive),
        1 => Just(TimeoutMode::Default),
        1 => (1_i64..=120).prop_map(|s| TimeoutMode::Manual(Millis::seconds(s))),
    ]
}

/// Up to two days on, or, on a clock that jumps, anywhere.
fn any_wait(jumps: bool) -> impl Strategy<Value = i64> {
    let wild = if jumps { 1 } else { 0 };
    prop_oneof![
        6 => 0_i64..60_000,
        6 => 0_i64..2 * 86_400_000,
        wild => any::<i64>(),
        wild => -9 * 86_400_000_i64..0,
    ]
}

fn any_event(jumps: bool) -> impl Strategy<Value = Event> {
    let latency = || prop_oneof![0_i64..300, 0_i64..40_000, any::<i64>()];
    prop_oneof![
        12 => any_wait(jumps).prop_map(Event::Wait),
        12 => (1_u16..150, 0_i64..9_000).prop_map(|(count, ms)| Event::Answers(count, ms)),
        4 => (latency(), any::<bool>()).prop_map(|(ms, probe)| Event::Failed(ms, probe)),
        8 => any::<bool>().prop_map(Event::TimedOut),
        4 => Just(Event::Unguarded),
        2 => latency().prop_map(Event::Probe),
        2 => Just(Event::BreakerOpened),
        2 => Just(Event::BreakerClosed),
        6 => Just(Event::Recompute),
        1 => Just(Event::Reset),
        1 => any_mode().prop_map(Event::Mode),
    ]
}

fn any_events(jumps: bool) -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(any_event(jumps), 1..150)
}

fn apply(bench: &mut Bench, event: &Event) {
    match *event {
        Event::Wait(ms) => bench.wait(Millis::new(ms)),
        Event::Answers(count, ms) => {
            for _ in 0..count {
                bench.attempt(ms);
            }
        }
        Event::Failed(ms, probe) => {
            bench.observe(Sample::Failed { elapsed: Millis::new(ms), probe });
        }
        Event::TimedOut(probe) => {
            bench.observe(Sample::TimedOut { timeout: Millis::new(bench.ms()), probe });
        }
        Event::Unguarded => {
            bench.observe(Sample::TimedOutUnguarded { timeout: Millis::new(bench.ms()) });
        }
        Event::Probe(ms) => {
            bench.observe(Sample::Answered { elapsed: Millis::new(ms), probe: true });
        }
        Event::BreakerOpened => bench.timeouts.breaker_opened(),
        Event::BreakerClosed => bench.timeouts.breaker_closed(),
        Event::Recompute => {
            bench.recompute();
        }
        Event::Reset => bench.timeouts.reset(),
        Event::Mode(mode) => bench.mode = mode,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_timeout_stays_in_its_bounds_on_any_clock(events in any_events(true)) {
        let mut bench = Bench::new();
        for event in &events {
            apply(&mut bench, event);
            let adaptive = bench.timeouts.in_force(&TimeoutMode::Adaptive, &bench.params).get();
            prop_assert!((1_000..=30_000).contains(&adaptive), "{adaptive} ms after {event:?}");
            prop_assert!(bench.timeouts.days().count() <= 8);
            if let Event::Recompute = event && let Some(at) = bench.timeouts.next_recompute_at() {
                prop_assert!(at <= bench.now + Millis::days(1));
            }
        }
    }

    #[test]
    fn only_adaptive_timeouts_change_and_every_change_is_told(events in any_events(true)) {
        let mut bench = Bench::new();
        for event in &events {
            let (before, told) = (bench.ms(), bench.changes.len());
            apply(&mut bench, event);
            let told = &bench.changes[told..];
            match event {
                Event::Mode(_) | Event::Reset => {}
                _ if bench.mode == TimeoutMode::Adaptive => {
                    let ends: Vec<i64> = told.iter().flat_map(|c| [c.from.get(), c.to.get()]).collect();
                    prop_assert_eq!(ends.first().copied().unwrap_or(before), before);
                    prop_assert_eq!(ends.last().copied().unwrap_or(before), bench.ms());
                    prop_assert!(ends.get(1..).unwrap_or(&[]).chunks(2).all(|c| c.len() < 2 || c[0] == c[1]));
                }
                _ => prop_assert!(told.is_empty() && bench.ms() == before),
            }
        }
    }

    #[test]
    fn shorter_comes_in_small_steps_a_week_apart_and_never_early(events in any_events(false)) {
        let mut bench = Bench::new();
        let mut stepped_at: Option<Timestamp> = None;
        for event in &events {
            let told = bench.changes.len();
            apply(&mut bench, event);
            for change in &bench.changes[told..] {
                let longer = change.to > change.from;
                match change.reason {
                    ChangeReason::Stale => stepped_at = None,
                    ChangeReason::Step => {
                        let report = bench.report();
                        prop_assert!(!longer && change.to >= change.from.scaled(3, 4));
                        prop_assert!(change.to >= report.target_ms.unwrap());
                        prop_assert!(report.sample_count >= 100);
                        let first = bench.timeouts.learned().unwrap().first_sample_at;
                        prop_assert!(bench.now - first >= Millis::hours(24));
                        prop_assert!(stepped_at.is_none_or(|at| bench.now - at >= Millis::days(7)));
                        stepped_at = Some(bench.now);
                    }
                    _ => prop_assert!(longer, "{change:?}"),
                }
            }
            if let Event::Reset | Event::Mode(_) = event {
                stepped_at = None;
            }
        }
    }

    #[test]
    fn an_outage_changes_nothing_whatever_came_before(
        events in any_events(false), failures in 1_u32..64, late in 0_u32..200,
    ) {
        let mut with = Bench::new();
        for event in &events {
            apply(&mut with, event);
        }
        with.mode = TimeoutMode::Adaptive;
        with.timeouts.breaker_closed();
        with.attempt(80);
        let mut without = with.clone();
        for _ in 0..failures {
            with.time_out();
        }
        with.timeouts.breaker_opened();
        for _ in 0..late {
            with.time_out();
            with.observe(Sample::TimedOut { timeout: with.params.max, probe: true });
        }
        let over = Sample::Answered { elapsed: Millis::new(80), probe: true };
        prop_assert_eq!(with.observe(over), without.observe(over));
        prop_assert_eq!(with, without);
    }

    #[test]
    fn what_is_stored_is_all_that_matters(events in any_events(false), later in any_events(false)) {
        let mut bench = Bench::new();
        for event in &events {
            apply(&mut bench, event);
        }
        // What is lost on purpose: failures held back, and the window for spikes.
        bench.timeouts.breaker_closed();
        bench.attempt(80);
        bench.timeouts.recent = Recent::default();
        bench.timeouts.watch = Watch::default();
        let days: Vec<_> = bench.timeouts.days().collect();
        let stored = days.iter().map(|(day, bytes)| (*day, bytes.as_slice()));
        let restored = Timeouts::restore(bench.timeouts.learned().cloned(), stored).unwrap();
        let mut other = Bench { timeouts: restored, ..bench.clone() };
        for event in &later {
            apply(&mut bench, event);
            apply(&mut other, event);
        }
        prop_assert_eq!(bench.changes, other.changes);
        prop_assert_eq!(bench.timeouts.learned(), other.timeouts.learned());
    }

    #[test]
    fn no_parameters_and_no_stored_figures_break_it(
        numbers in prop::array::uniform8(any::<i64>()), counts in prop::array::uniform8(any::<u32>()), events in any_events(true),
    ) {
        let mut bench = Bench::new();
        let [default, min, max, buffer, every, stale, age, step] = numbers.map(Millis::new);
        bench.params = TimeoutParams {
            default, min, max, buffer, recompute_every: every, stale_after: stale, min_age: age, step_every: step,
            percentile_permyriad: counts[0], multiplier_permille: counts[1], shrink_permille: counts[2],
            growth_permille: counts[3], spike_permille: counts[4], spike_min_attempts: counts[5],
            min_timeouts: counts[6], rise_deviations: counts[7], incident_limit: counts[0] % 100,
            min_samples: counts[1].into(), window_days: 3,
        };
        let [first_sample_at, last_sample_at, recompute_at, since] =
            [numbers[0], numbers[1], numbers[2], numbers[3]].map(Timestamp::from_millis);
        let tally = Tally { attempts: counts[2], timeouts: counts[3] };
        bench.timeouts = Timeouts::restore(Some(Learned {
            timeout: Some(buffer), first_sample_at, last_sample_at, recompute_at, estimate: None, tally,
            rollout: Rollout::Trial { baseline: default, since, before: tally },
        }), []).unwrap();
        for event in events.iter().take(40) {
            apply(&mut bench, event);
        }
    }
}
