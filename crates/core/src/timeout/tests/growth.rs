//! Lengthening: what calls for it, how far it goes, and that it stops.

use super::*;

#[test]
fn a_destination_that_takes_seven_seconds_gets_more_than_the_default() {
    let mut bench = Bench::new();
    bench.day(20, |_| 7_000);
    // Longer needs no hundred samples. 7,000 ms lie in the bin that ends at 7,039.
    assert_eq!(bench.changes, change(10_000, 11_058, ChangeReason::Slower).into_iter().collect::<Vec<_>>());
}

#[test]
fn a_spike_of_timeouts_lengthens_at_once() {
    let table = [
        ("two of twenty", vec![6, 12], 20, 15_000),
        ("one of twenty is five percent, not more", vec![12], 20, 10_000),
        ("two of nineteen are too few attempts", vec![6, 12], 19, 10_000),
        ("four among the last 64", vec![100, 115, 130, 145], 150, 15_000),
        ("three among the last 64", vec![100, 120, 140], 150, 10_000),
    ];
    for (case, timeouts, attempts, expected) in table {
        let mut bench = Bench::new();
        for number in 1..=attempts {
            if timeouts.contains(&number) {
                bench.time_out()
            } else {
                bench.answer(80)
            };
        }
        assert_eq!(bench.ms(), expected, "{case}");
    }
}

#[test]
fn a_slowing_destination_is_followed_until_it_is_answered_again() {
    let mut bench = Bench::new();
    for _ in 0..60 {
        bench.day(200, |_| 80);
    }
    assert_eq!(bench.ms(), 1_000);
    bench.changes.clear();
    // Every fifth answer now takes six seconds: too few for the breaker, and the week before was fast.
    let mut timeouts = 0;
    for number in 0..400 {
        let ms = if number % 5 == 0 { 6_000 } else { 80 };
        timeouts += u32::from(ms > bench.ms());
        bench.attempt(ms);
        bench.wait(Millis::seconds(30));
    }
    assert_eq!(bench.reasons(), [ChangeReason::Spike; 5]);
    assert!(bench.ms() >= 6_000 && timeouts < 40, "{} ms after {timeouts} timeouts", bench.ms());
}

#[test]
fn attempts_that_began_under_a_shorter_timeout_do_not_lengthen_again() {
    let mut bench = Bench::new();
    bench.answers(18, 80);
    let in_flight = Sample::TimedOut { timeout: Millis::seconds(10), probe: false };
    for _ in 0..200 {
        bench.observe(in_flight);
        bench.answer(80);
    }
    assert_eq!(bench.changes, change(10_000, 15_000, ChangeReason::Spike).into_iter().collect::<Vec<_>>());
}

/// A day of 300 attempts, of which `timeouts` time out, far enough from each other to be no spike.
fn day_with(bench: &mut Bench, timeouts: i64) {
    bench.day(300, |number| if number % 60 == 30 && number / 60 < timeouts { 60_000 } else { 80 });
}

#[test]
fn a_percentile_among_timeouts_lengthens_once_for_what_happened() {
    let mut bench = Bench::new();
    day_with(&mut bench, 5);
    assert_eq!(
        bench.changes,
        change(10_000, 15_000, ChangeReason::PercentileTimedOut).into_iter().collect::<Vec<_>>()
    );
    assert_eq!(bench.report().p99_ms, None);
    // The same five timeouts stay in the window for a week: they have been answered.
    for _ in 0..4 {
        bench.day(20, |_| 80);
    }
    assert_eq!(bench.changes.len(), 1);
    for _ in 0..10 {
        day_with(&mut bench, 5);
    }
    assert_eq!(bench.ms(), 30_000, "new ones count, up to the longest timeout");
}

#[test]
fn two_stray_timeouts_of_a_quiet_destination_lengthen_nothing() {
    let mut bench = Bench::new();
    bench.day(50, |number| if number == 10 || number == 40 { 60_000 } else { 80 });
    assert_eq!(bench.report().p99_ms, None, "they are four percent of its samples");
    assert_eq!(bench.ms(), 10_000);
}

#[test]
fn nothing_is_shortened_for_a_week_after_growth() {
    let mut bench = Bench::new();
    bench.day(300, |_| 80);
    assert_eq!(bench.ms(), 7_500);
    for number in 0..64 {
        if number % 9 == 0 {
            bench.time_out()
        } else {
            bench.answer(80)
        };
    }
    let grown = bench.ms();
    assert!(grown > 7_500);
    for _ in 0..6 {
        bench.day(2_000, |_| 80);
        assert_eq!(bench.ms(), grown);
    }
    bench.day(2_000, |_| 80);
    bench.day(2_000, |_| 80);
    assert!(bench.ms() < grown);
}
