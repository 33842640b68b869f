use super::*;

mod laws;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// A destination that lets `limit` pass per window of `window` ms, and a lane that always has something to send it.
struct Bench {
    pace: Pace,
    now: i64,
    limit: u32,
    window: i64,
    /// What it asks for with a 429: the time until the window ends, or nothing.
    says_when: bool,
    used: (i64, u32),
    passed: u32,
    refused: u32,
}

impl Bench {
    fn new(limit: u32, window: i64, says_when: bool) -> Self {
        let pace = Pace::new(Mono::from_millis(0));
        Self { pace, now: 0, limit, window, says_when, used: (0, 0), passed: 0, refused: 0 }
    }

    fn mono(&self) -> Mono {
        Mono::from_millis(self.now)
    }
    fn rate(&self) -> f64 {
        self.pace.per_minute(self.mono())
    }

    /// One start, as soon as it may be, and its answer at once.
    fn attempt(&mut self) {
        self.now += self.pace.wait(self.mono()).map_or(0, Millis::get);
        self.pace.take(self.mono());
        let number = self.now / self.window;
        if self.used.0 != number {
            self.used = (number, 0);
        }
        if self.used.1 < self.limit {
            self.used.1 += 1;
            self.passed += 1;
            self.pace.passed();
        } else {
            self.refused += 1;
            let wait = if self.says_when { (number + 1) * self.window - self.now } else { MINUTE };
            self.pace.rate_limited(self.mono(), Millis::new(wait));
            self.now += wait;
        }
    }

    /// Lets through and refused, over so long.
    fn run(&mut self, length: i64) -> (u32, u32) {
        let (before, end) = ((self.passed, self.refused), self.now + length);
        while self.now < end {
            self.attempt();
        }
        (self.passed - before.0, self.refused - before.1)
    }
}

#[test]
fn it_settles_just_under_the_limit() {
    for (says_when, least) in [(true, 0.98), (false, 0.96)] {
        for limit in [10, 100, 5_000] {
            let mut bench = Bench::new(limit, MINUTE, says_when);
            bench.run(2 * HOUR);
            let (passed, refused) = bench.run(12 * HOUR);
            let used = f64::from(passed) / f64::from(limit * 12 * 60);
            assert!(used >= least, "{limit} per minute, says when: {says_when}: {used:.4} used");
            assert!(
                refused <= 24,
                "{limit} per minute, says when: {says_when}: {refused} refused in 12 hours"
            );
        }
    }
}

#[test]
fn an_unknown_destination_is_tried_ever_faster_until_the_first_429() {
    let mut bench = Bench::new(u32::MAX, MINUTE, true);
    assert_eq!(bench.rate(), 60.0);
    bench.run(2 * MINUTE);
    assert!(bench.rate() > 1_000.0, "{}", bench.rate());
    bench.run(2 * MINUTE);
    assert_eq!(bench.rate(), FASTEST);
}

#[test]
fn a_throttle_teaches_what_was_let_through_and_where_the_429_came() {
    let mut bench = Bench::new(100, MINUTE, true);
    while bench.refused == 0 {
        bench.attempt();
    }
    let Phase::Shut { rate: ceiling, .. } = bench.pace.phase else { panic!("a 429 shuts") };
    assert!(ceiling > 150.0, "{ceiling}");
    bench.attempt();
    assert!((90.0..=98.0).contains(&bench.rate()), "a hundred a minute: {}", bench.rate());
}

#[test]
fn it_rises_to_the_ceiling_ever_more_slowly_and_past_it_ever_faster() {
    let mut pace = Pace::new(Mono::from_millis(0));
    pace.phase = Phase::Cruising { floor: 90.0, ceiling: 100.0 };
    let after = [0, 10, 30, 60, 90, 120, 240].map(|minutes| {
        pace.busy_us = minutes * 60_000_000;
        (pace.per_minute(Mono::from_millis(0)) * 10.0).round() / 10.0
    });
    assert_eq!(after, [90.0, 94.2, 98.8, 100.0, 101.3, 110.0, 370.0]);
}

#[test]
fn the_more_a_429_costs_the_more_slowly_it_rises() {
    let stretch = |wait: Millis| {
        let mut pace = Pace::new(Mono::from_millis(0));
        pace.rate_limited(Mono::from_millis(0), wait);
        pace.passed();
        pace.stretch()
    };
    assert_eq!(stretch(Millis::seconds(1)), Millis::hours(1));
    assert_eq!(stretch(Millis::minutes(5)), Millis::hours(5));
    assert_eq!(stretch(Millis::hours(24)), Millis::days(7));
}

#[test]
fn a_limit_that_halves_is_followed_at_the_second_429() {
    for says_when in [true, false] {
        let mut bench = Bench::new(100, MINUTE, says_when);
        bench.run(6 * HOUR);
        bench.limit = 50;
        let refused = bench.refused;
        while bench.refused < refused + 2 {
            bench.attempt();
        }
        assert!(bench.rate() <= 50.0, "{}", bench.rate());
        let (_, refused) = bench.run(HOUR);
        assert!(refused <= 3, "{refused}");
    }
}

#[test]
fn a_limit_that_doubles_is_found_within_six_hours() {
    for says_when in [true, false] {
        let mut bench = Bench::new(100, MINUTE, says_when);
        bench.run(24 * HOUR);
        bench.limit = 200;
        bench.run(6 * HOUR);
        let (passed, _) = bench.run(HOUR);
        assert!(passed >= 200 * 60 * 95 / 100, "{passed}");
    }
}

#[test]
fn a_daily_quota_is_learned_from_its_first_refusal() {
    let mut bench = Bench::new(1_000, 24 * HOUR, true);
    bench.run(10 * 24 * HOUR);
    assert!(bench.refused <= 12, "{}", bench.refused);
    assert_eq!(bench.passed, 10_000);
    assert!(bench.rate() < 1_000.0 / 1_440.0 * 1.2, "{}", bench.rate());
}

#[test]
fn a_wait_far_beyond_the_usual_is_no_limit() {
    let mut bench = Bench::new(100, MINUTE, true);
    bench.run(6 * HOUR);
    bench.pace.rate_limited(bench.mono(), Millis::days(2));
    bench.now += 48 * HOUR;
    bench.run(20 * MINUTE);
    assert!(bench.rate() > 50.0, "not one in half an hour: {}", bench.rate());
}

#[test]
fn further_429s_lengthen_a_throttle_but_do_not_move_its_ceiling() {
    let mut bench = Bench::new(100, MINUTE, true);
    while bench.refused == 0 {
        bench.attempt();
    }
    let before = bench.pace.clone();
    let Phase::Shut { at, rate: ceiling, .. } = before.phase else { panic!("a 429 shuts") };
    bench.pace.rate_limited(bench.mono(), Millis::minutes(5));
    let until = later(bench.mono(), Millis::minutes(5));
    assert_eq!(bench.pace.phase, Phase::Shut { at, until, rate: ceiling });
    assert!(bench.rate() < before.per_minute(bench.mono()), "more time for the same number");
}

#[test]
fn only_starts_that_waited_their_turn_raise_the_rate() {
    let mut pace = Pace::new(Mono::from_millis(0));
    for hour in 1..1_000 {
        pace.take(Mono::from_millis(hour * HOUR));
        pace.passed();
    }
    assert_eq!(pace.per_minute(Mono::from_millis(0)), START);
}

#[test]
fn a_late_timer_does_not_slow_it_down_but_an_idle_time_is_not_made_up_for() {
    let mut pace = Pace::new(Mono::from_millis(0));
    pace.phase = Phase::Cruising { floor: 42_000.0, ceiling: 42_000.0 };
    let (mut now, mut starts) = (0, 0);
    while now < 10_000 {
        if pace.wait(Mono::from_millis(now)).is_none() {
            pace.take(Mono::from_millis(now));
            starts += 1;
        } else {
            now += 3; // A timer that is up to 3 ms late.
        }
    }
    assert!((6_990..=7_010).contains(&starts), "700 a second: {starts}");
    let idle = Mono::from_millis(now + HOUR);
    pace.take(idle);
    assert_eq!(pace.wait(idle), Some(Millis::new(2)));
}

fn hint(remaining: u64, reset: Millis) -> RateHint {
    RateHint { remaining: Some(remaining), reset: Some(reset), ..RateHint::default() }
}

#[test]
fn what_is_left_is_spread_over_the_time_until_there_is_more() {
    let at = Mono::from_millis(0);
    let mut pace = Pace::new(at);
    pace.stated(at, &hint(20, Millis::minutes(1)));
    assert_eq!(pace.per_minute(at), 20.0 * STATED_MARGIN);
    assert_eq!(pace.per_minute(Mono::from_millis(MINUTE)), START, "a statement ends with its time");
    pace.stated(at, &hint(1_000, Millis::minutes(1)));
    assert_eq!(pace.per_minute(at), START, "a promise does not speed it up");
    let announced = RateHint { limit: Some(60), window: Some(Millis::hours(1)), ..RateHint::default() };
    pace.stated(at, &announced);
    assert_eq!(pace.per_minute(at), STATED_MARGIN, "a limit alone counts over its window");
}

#[test]
fn nothing_left_holds_until_the_reset_but_a_day_at_most() {
    let at = Mono::from_millis(0);
    for (reset, held) in [(Millis::minutes(7), Millis::minutes(7)), (Millis::days(9), Millis::hours(24))] {
        let mut pace = Pace::new(at);
        pace.stated(at, &hint(0, reset));
        assert_eq!(pace.wait(at), Some(held));
        assert_eq!(pace.wait(later(at, held)), None);
        assert_eq!(pace.per_minute(later(at, held)), START, "nothing left is no rate");
    }
}

#[test]
fn a_429_is_held_against_the_rate_it_started_with_not_against_what_it_says_itself() {
    let at = Mono::from_millis(0);
    let mut pace = Pace::new(at);
    pace.take(at);
    pace.stated(at, &hint(1, Millis::hours(1)));
    pace.rate_limited(at, Millis::seconds(1));
    assert!(matches!(pace.phase, Phase::Shut { rate: START, .. }), "{:?}", pace.phase);
}

#[test]
fn a_new_process_goes_on_with_what_the_old_one_knew() {
    let mut bench = Bench::new(100, MINUTE, true);
    bench.run(6 * HOUR);
    let (knew, elsewhere) = (bench.rate(), Mono::from_millis(-5));
    bench.pace.rebase(elsewhere);
    assert_eq!(bench.pace.per_minute(elsewhere), knew);
    assert!(bench.pace.wait(elsewhere).is_some_and(|wait| wait < Millis::seconds(1)), "and with no burst");
}
