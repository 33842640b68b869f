//! Outages teach nothing, and yet no destination is locked out.

use super::*;

/// A destination that answers in 80 ms and has come down to the shortest timeout.
fn settled() -> Bench {
    let mut bench = Bench::new();
    for _ in 0..60 {
        bench.day(200, |_| 80);
    }
    assert_eq!(bench.ms(), 1_000);
    bench.changes.clear();
    bench
}

fn probe(bench: &mut Bench, ms: i64) -> Option<TimeoutChange> {
    let timeout = bench.timeouts.for_probe(&bench.mode, &bench.params);
    let elapsed = Millis::new(ms);
    let answered = elapsed <= timeout;
    let sample = if answered {
        Sample::Answered { elapsed, probe: true }
    } else {
        Sample::TimedOut { timeout, probe: true }
    };
    bench.observe(sample)
}

#[test]
fn an_outage_leaves_no_trace() {
    let mut bench = settled();
    let before = bench.report();
    for _ in 0..5 {
        bench.time_out();
    }
    bench.timeouts.breaker_opened();
    for _ in 0..200 {
        bench.wait(Millis::seconds(30));
        bench.time_out(); // was in flight when the breaker opened
        probe(&mut bench, 60_000);
        bench.timeouts.breaker_opened();
    }
    assert_eq!(bench.report().sample_count, before.sample_count);
    probe(&mut bench, 80);
    bench.timeouts.breaker_closed();
    bench.answers(100, 80);
    assert_eq!(bench.report().sample_count, before.sample_count + 101);
    assert_eq!((bench.ms(), bench.changes.len()), (1_000, 0));
}

#[test]
fn fast_refusals_in_the_run_that_opened_the_breaker_are_no_samples_either() {
    let mut bench = settled();
    let before = bench.report().sample_count;
    for _ in 0..3 {
        bench.observe(Sample::Failed { elapsed: Millis::new(2), probe: false });
        bench.time_out();
    }
    bench.timeouts.breaker_opened();
    bench.observe(Sample::Failed { elapsed: Millis::new(2), probe: false });
    probe(&mut bench, 80);
    assert_eq!(bench.report().sample_count, before + 1);
}

#[test]
fn failures_that_do_not_open_the_breaker_are_samples_when_an_answer_follows() {
    let mut bench = settled();
    let before = bench.report().sample_count;
    bench.observe(Sample::Failed { elapsed: Millis::new(90), probe: false });
    bench.observe(Sample::Failed { elapsed: Millis::new(95), probe: false });
    assert_eq!(bench.report().sample_count, before, "held back");
    bench.answer(80);
    assert_eq!(bench.report().sample_count, before + 3);
    for _ in 0..4 {
        bench.time_out();
    }
    bench.answer(80);
    assert_eq!(bench.report().sample_count, before + 5, "timeouts in a row are one incident, and one sample");
}

#[test]
fn small_outages_between_answers_do_not_loosen_the_timeout() {
    let mut bench = settled();
    for _ in 0..60 {
        // Three times a day the retries of one event run into an outage too short for the breaker.
        bench.day(400, |number| {
            if [50..54, 150..153, 300..302].iter().any(|gone| gone.contains(&number)) { 60_000 } else { 80 }
        });
    }
    assert_eq!((bench.ms(), bench.changes.len()), (1_000, 0));
}

#[test]
fn a_destination_that_became_slow_for_good_is_rescued_by_the_probe() {
    let mut bench = settled();
    for _ in 0..5 {
        bench.attempt(1_200);
    }
    bench.timeouts.breaker_opened();
    bench.wait(Millis::seconds(30));
    assert_eq!(probe(&mut bench, 1_200), change(1_000, 2_300, ChangeReason::SlowProbe));
    bench.timeouts.breaker_closed();
    for _ in 0..30 {
        bench.day(200, |_| 1_200);
    }
    assert!((2_300..2_400).contains(&bench.ms()), "{} ms", bench.ms());
    assert_eq!(bench.report().p99_ms, Some(Millis::new(1_215)));
}

#[test]
fn a_probe_that_fails_slowly_changes_nothing() {
    let mut bench = settled();
    bench.timeouts.breaker_opened();
    let before = bench.report().sample_count;
    // A gateway's 504 after 29 seconds is an outage.
    let slow_failure = Sample::Failed { elapsed: Millis::seconds(29), probe: true };
    assert_eq!(bench.observe(slow_failure), None);
    assert_eq!((bench.ms(), bench.report().sample_count), (1_000, before));
}

#[test]
fn a_probe_that_times_out_after_a_good_one_is_no_sample() {
    let mut bench = settled();
    bench.timeouts.breaker_opened();
    let before = bench.report().sample_count;
    for ms in [80, 60_000, 80] {
        probe(&mut bench, ms);
    }
    assert_eq!(bench.report().sample_count, before + 2);
}

#[test]
fn a_slow_probe_that_changes_nothing_does_not_hide_what_did() {
    let mut bench = Bench::new();
    bench.observe(Sample::Failed { elapsed: Millis::seconds(20), probe: false });
    bench.answers(56, 80);
    for _ in 0..3 {
        bench.observe(Sample::TimedOutUnguarded { timeout: Millis::seconds(10) });
    }
    bench.time_out();
    // The probe releases the fourth timeout: a spike, answered with the longest timeout, which the probe exceeds.
    let slow = Sample::Answered { elapsed: Millis::seconds(31), probe: true };
    assert_eq!(bench.observe(slow), change(10_000, 30_000, ChangeReason::Spike));
}

#[test]
fn a_manual_timeout_is_not_touched_by_a_slow_probe() {
    let mut bench = Bench::new();
    bench.mode = TimeoutMode::pinned(5).unwrap();
    bench.timeouts.breaker_opened();
    assert_eq!(bench.observe(Sample::Answered { elapsed: Millis::seconds(25), probe: true }), None);
    assert_eq!(bench.ms(), 5_000);
}

#[test]
fn without_a_breaker_timeouts_lengthen_until_answers_come_back() {
    let mut bench = settled();
    for _ in 0..500 {
        if bench.ms() >= 1_200 {
            bench.answer(1_200);
        } else {
            bench.observe(Sample::TimedOutUnguarded { timeout: Millis::new(bench.ms()) });
        }
    }
    assert_eq!((bench.ms(), bench.reasons()), (1_500, vec![ChangeReason::Spike]));
}

#[test]
fn a_timeout_without_a_breaker_is_a_sample_of_at_least_its_length() {
    let mut bench = Bench::new();
    // Five of three hundred, far enough from each other to be no spike: the 99th percentile lies among them.
    for number in 0..300 {
        match number % 60 {
            30 => bench.observe(Sample::TimedOutUnguarded { timeout: Millis::new(bench.ms()) }),
            _ => bench.answer(80),
        };
    }
    bench.wait(Millis::days(1));
    bench.recompute();
    assert_eq!(bench.report().p99_ms, None, "nobody knows how long they would have taken");
    assert_eq!(bench.changes.last().copied(), change(10_000, 15_000, ChangeReason::PercentileTimedOut));
}

#[test]
fn a_breaker_that_never_opens_does_not_lock_a_slow_destination_out() {
    let mut bench = settled();
    let mut timeouts = 0;
    for _ in 0..1_000 {
        timeouts += u32::from(bench.ms() < 6_000);
        bench.attempt(6_000);
    }
    assert!(bench.ms() >= 6_000 && timeouts < 400, "{} ms after {timeouts} timeouts", bench.ms());
}
