//! Shortening: when it may begin, how fast it goes, and when it is taken back.

use super::*;

#[test]
fn shortening_needs_a_hundred_samples_and_a_day() {
    let hours = Millis::hours;
    let table = [
        ("enough of both", 100, hours(24), 7_500),
        ("one sample too few", 99, hours(24), 10_000),
        ("a moment too young", 100, hours(24) - Millis::new(1), 10_000),
        ("thousands in a moment", 5_000, Millis::ZERO, 10_000),
        ("few in days", 50, hours(72), 10_000),
    ];
    for (case, samples, age, expected) in table {
        let mut bench = Bench::new();
        bench.answers(samples, 80);
        bench.wait(age);
        bench.recompute();
        assert_eq!(bench.ms(), expected, "{case}");
    }
}

#[test]
fn an_age_of_its_own_is_waited_for_to_the_moment() {
    let mut bench = Bench::new();
    bench.params.min_age = Millis::hours(36);
    bench.answers(500, 80);
    let first = bench.now;
    while bench.changes.is_empty() {
        bench.now = bench.timeouts.next_recompute_at().unwrap();
        bench.recompute();
    }
    assert_eq!((bench.now - first, bench.ms()), (Millis::hours(36), 7_500));
}

#[test]
fn a_fast_destination_gets_shorter_by_a_quarter_each_week_down_to_the_computed_value() {
    let mut bench = Bench::new();
    let mut stepped = Vec::new();
    for day in 1..=80 {
        bench.day(40, |number| 80 + number);
        // 40 a day are a hundred on the third.
        if stepped.last().is_none_or(|&(_, ms)| ms != bench.ms()) && bench.ms() < 10_000 {
            stepped.push((day, bench.ms()));
        }
    }
    let expected = [
        (3, 7_500),
        (10, 5_625),
        (17, 4_218),
        (24, 3_163),
        (31, 2_372),
        (38, 1_779),
        (45, 1_334),
        (52, 1_000),
    ];
    assert_eq!(stepped, expected);
}

#[test]
fn attempts_alone_keep_the_steps_on_their_days() {
    let mut bench = Bench::new();
    for _ in 0..(29 * 288) {
        bench.answer(80);
        bench.wait(Millis::minutes(5));
    }
    // Steps on days 1, 8, 15 and 22, with nobody calling `recompute`; the fifth is due after day 29.
    assert_eq!((bench.ms(), bench.reasons()), (3_163, vec![ChangeReason::Step; 4]));
}

#[test]
fn a_step_never_goes_below_the_computed_value() {
    let mut bench = Bench::new();
    for _ in 0..30 {
        bench.day(120, |_| 4_200);
    }
    assert_eq!((bench.ms(), bench.reasons()), (6_834, vec![ChangeReason::Step; 2]));
}

/// Of a thousand answers, eight take six seconds: the 99th percentile does not see them, the share of timeouts does.
fn eight_in_a_thousand(number: i64) -> i64 {
    if number % 125 == 60 { 6_000 } else { 100 }
}

#[test]
fn a_step_that_brings_timeouts_is_taken_back_after_three() {
    let mut bench = Bench::new();
    for _ in 0..8 {
        bench.day(1_000, eight_in_a_thousand);
    }
    assert_eq!(bench.ms(), 5_625, "the 99th percentile of 100 ms asks for less");
    bench.day(1_000, eight_in_a_thousand);
    assert_eq!(bench.changes.last().copied(), change(5_625, 7_500, ChangeReason::StepTakenBack));
    let tally = bench.timeouts.learned().unwrap().tally;
    assert!(tally.timeouts == 0 && tally.attempts > 7_000, "{tally:?} is not that of the longer timeout");

    bench.changes.clear();
    for _ in 0..6 {
        bench.day(1_000, eight_in_a_thousand);
    }
    assert_eq!((bench.ms(), bench.changes.len()), (7_500, 0), "it waits a week before it tries again");
    bench.day(1_000, eight_in_a_thousand);
    assert_eq!(bench.reasons(), [ChangeReason::Step, ChangeReason::StepTakenBack]);
}

#[test]
fn a_tail_that_the_percentile_does_not_see_hardly_ever_times_out() {
    let mut bench = Bench::new();
    let mut timeouts = 0;
    for _ in 0..60 {
        for number in 0..1_000 {
            let ms = eight_in_a_thousand(number);
            timeouts += u32::from(ms > bench.ms());
            bench.attempt(ms);
            bench.wait(Millis::days(1).scaled(1, 1_000));
        }
    }
    assert!((1..=30).contains(&timeouts), "{timeouts} of 60,000 timed out for nothing; 480 would with 1 s");
}

#[test]
fn a_rise_is_more_than_chance() {
    let tally = |timeouts, attempts| Tally { attempts, timeouts };
    let table = [
        ("one stray timeout", tally(1, 50), tally(0, 10_000), false),
        ("two of them", tally(2, 50), tally(0, 10_000), false),
        ("three among hundreds, none before", tally(3, 400), tally(0, 10_000), true),
        ("three where as many are usual", tally(3, 400), tally(75, 10_000), false),
        ("a share that doubled", tally(100, 5_000), tally(100, 10_000), true),
        ("a share a little higher", tally(55, 5_000), tally(100, 10_000), false),
        ("a lower share", tally(10, 5_000), tally(100, 10_000), false),
        ("a handful in as many attempts as before", tally(5, 1_000), tally(0, 1_000), false),
        ("ten in as many attempts as before", tally(10, 1_000), tally(0, 1_000), true),
        ("nothing to compare with", tally(9, 100), tally(0, 0), false),
        ("no attempts", tally(0, 0), tally(0, 0), false),
        ("at the limit", tally(u32::MAX, u32::MAX), tally(0, u32::MAX), true),
    ];
    for (case, after, before, expected) in table {
        assert_eq!(after.rose_since(before, &TimeoutParams::default()), expected, "{case}");
    }
}
