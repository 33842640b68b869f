//! Staleness, and clocks that jump.

use super::*;

/// A destination whose second step has just been taken.
fn learned() -> Bench {
    let mut bench = Bench::new();
    for _ in 0..8 {
        bench.day(200, |_| 80);
    }
    assert_eq!(bench.ms(), 5_625);
    bench.changes.clear();
    bench
}

#[test]
fn a_week_without_samples_falls_back_to_the_default() {
    let mut bench = learned();
    let last = bench.timeouts.learned().unwrap().last_sample_at;
    // Woken only when it asks to be: it asks for the very moment.
    while let Some(at) = bench.timeouts.next_recompute_at() {
        assert!(at > bench.now);
        bench.now = at;
        bench.recompute();
    }
    assert_eq!(bench.now, last + Millis::days(7));
    assert_eq!(bench.changes.last().copied(), change(5_625, 10_000, ChangeReason::Stale));
    assert_eq!(bench.report().sample_count, 0);
}

#[test]
fn an_answer_after_a_week_of_silence_starts_anew() {
    let mut bench = learned();
    bench.wait(Millis::days(8));
    assert_eq!(bench.answer(80), change(5_625, 10_000, ChangeReason::Stale));
    assert_eq!(bench.report().sample_count, 1);
    bench.answers(500, 80);
    assert_eq!(bench.ms(), 10_000, "its age begins anew, too");
}

#[test]
fn a_week_of_failures_is_a_week_without_samples() {
    let mut bench = learned();
    bench.timeouts.breaker_opened();
    for _ in 0..8 {
        bench.day(50, |_| 60_000);
    }
    assert_eq!((bench.ms(), bench.reasons()), (10_000, vec![ChangeReason::Stale]));
    bench.answer(80);
    let before = bench.report().sample_count;
    bench.time_out();
    bench.observe(Sample::Answered { elapsed: Millis::new(80), probe: true });
    assert_eq!(bench.report().sample_count, before + 1, "the breaker is still known to be open");
}

#[test]
fn a_clock_set_back_by_a_year_does_not_stop_the_daily_run() {
    let mut bench = learned();
    bench.now = bench.now - Millis::days(365);
    for _ in 0..9 {
        bench.day(200, |_| 80);
    }
    assert_eq!(bench.ms(), 4_218, "the step waits for a week by the new clock");
    assert!(bench.timeouts.next_recompute_at().unwrap() <= bench.now + Millis::days(1));
    assert!(bench.timeouts.days().count() <= 8);
}

#[test]
fn a_clock_that_was_wrong_for_a_moment_costs_what_was_learned_and_no_more() {
    let mut bench = learned();
    bench.wait(Millis::days(3_650));
    bench.answer(80);
    assert_eq!(bench.ms(), 10_000);
    bench.wait(Millis::days(-3_650));
    for _ in 0..9 {
        bench.day(200, |_| 80);
    }
    assert_eq!(bench.ms(), 5_625);
}

#[test]
fn a_clock_that_steps_back_over_midnight_loses_no_samples() {
    let mut bench = Bench::new();
    bench.now = Timestamp::parse("2026-03-01T23:59:59Z").unwrap();
    bench.answers(10, 80);
    for step in [2, -2, 2, -2, 2] {
        bench.wait(Millis::seconds(step));
        bench.answers(10, 80);
    }
    assert_eq!(bench.report().sample_count, 60);
}
