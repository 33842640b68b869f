//! Sixty days of a fleet of modelled destinations, as in the last table of the article that the adaptive timeout comes
//! from, behind a breaker that opens after five failures in a row.

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const DAY: i64 = 86_400_000;
const LAST_DAY: i64 = 60;
/// By then the fleet has had four steps; from then on it is measured.
const MEASURED_FROM: i64 = 31;

/// Uniform numbers from a seed (splitmix64): the same fleet each time.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// Between `low` and `high`, each doubling as likely as any other.
    fn spread(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }
}

/// How often destinations are down, and for how long: the mean days between outages, and their least and longest days.
struct Weather {
    between: f64,
    least: f64,
    longest: f64,
}

struct Destination {
    events_per_day: f64,
    median_ms: f64,
    spread: f64,
    /// The share of answers that take much longer, and how long those take.
    tail: (f64, f64),
    /// The share of requests that are never answered.
    hangs: f64,
    outages: Vec<(i64, i64)>,
}

impl Destination {
    /// One in eight is a slow partner, one in ten has a tail that the percentile does not see, one in four hangs at times.
    fn new(index: u64, dice: &mut Dice, weather: &Weather) -> Self {
        let (median_ms, spread) = if index.is_multiple_of(8) {
            (dice.spread(4_000.0, 8_000.0), 0.1 + 0.25 * dice.uniform())
        } else {
            (dice.spread(40.0, 1_000.0), 0.3 + 0.6 * dice.uniform())
        };
        let mut outages = Vec::new();
        let mut at = dice.exponential(weather.between);
        while at < LAST_DAY as f64 {
            let length = dice.spread(weather.least, weather.longest);
            outages.push((in_ms(at), in_ms(at + length)));
            at += length + dice.exponential(weather.between);
        }
        Self {
            events_per_day: dice.spread(30.0, 600.0),
            median_ms,
            spread,
            tail: (if index % 10 == 3 { 0.008 } else { 0.0 }, dice.spread(3_000.0, 12_000.0)),
            hangs: if index % 4 == 1 { 0.002 } else { 0.0 },
            outages,
        }
    }

    /// How long the answer to a request takes; none if it never comes.
    fn latency(&self, dice: &mut Dice, at: i64) -> Option<i64> {
        let down = self.outages.iter().any(|&(from, to)| (from..to).contains(&at));
        if down || dice.chance(self.hangs) {
            return None;
        }
        let (share, tail_ms) = self.tail;
        let ms =
            if dice.chance(share) { tail_ms } else { self.median_ms * (self.spread * dice.normal()).exp() };
        Some(whole(ms))
    }
}

fn in_ms(days: f64) -> i64 {
    whole(days * DAY as f64)
}

#[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
fn whole(ms: f64) -> i64 {
    ms as i64
}

#[derive(Default)]
struct Figures {
    attempts: u64,
    /// Timeouts of requests that would have been answered.
    false_timeouts: u64,
    busy_ms: i64,
    failed_ms: i64,
    /// What was in force at the end of each day.
    timeouts_ms: Vec<i64>,
}

/// Runs one destination through its sixty days.
fn run(destination: &Destination, dice: &mut Dice, mode: TimeoutMode, figures: &mut Figures) {
    let mut bench = Bench { mode, now: Timestamp::from_millis(0), ..Bench::new() };
    let mut queue = BinaryHeap::new();
    let mut at = 0.0;
    while at < LAST_DAY as f64 {
        queue.push(Reverse((in_ms(at), 0)));
        at += dice.exponential(1.0 / destination.events_per_day);
    }
    let (mut in_a_row, mut reopens, mut probes_left, mut open_until) = (0, 0_u32, 0, 0);
    while let Some(Reverse((due, retries))) = queue.pop() {
        let (start, probe) = (due.max(open_until), probes_left > 0);
        for day in bench.now.as_millis() / DAY..start / DAY {
            if day >= MEASURED_FROM {
                figures.timeouts_ms.push(bench.ms());
            }
        }
        let timeout =
            if probe { bench.timeouts.for_probe(&mode, &bench.params) } else { Millis::new(bench.ms()) };
        let latency = destination.latency(dice, start);
        let took = latency.unwrap_or(i64::MAX).min(timeout.get());
        let answered = latency == Some(took);
        bench.now = bench.now.max(Timestamp::from_millis(start + took));
        let elapsed = Millis::new(took);
        bench.observe(if answered {
            Sample::Answered { elapsed, probe }
        } else {
            Sample::TimedOut { timeout, probe }
        });
        if start >= MEASURED_FROM * DAY {
            figures.attempts += 1;
            figures.busy_ms += took;
            if !answered {
                figures.failed_ms += took;
                figures.false_timeouts += u64::from(latency.is_some());
            }
        }
        if answered {
            (in_a_row, reopens) = (0, 0);
            if probe {
                probes_left -= 1;
                if probes_left == 0 {
                    bench.timeouts.breaker_closed();
                }
            }
            continue;
        }
        in_a_row += 1;
        if probe || in_a_row == 5 {
            bench.timeouts.breaker_opened();
            open_until = bench.now.as_millis() + (30_000 << reopens.min(4)).min(600_000);
            (in_a_row, reopens, probes_left) = (0, reopens + 1, 2);
        }
        if let Some(delay) = [30_000, 120_000, 600_000, 3_600_000].get(retries) {
            queue.push(Reverse((bench.now.as_millis() + delay, retries + 1)));
        }
    }
}

fn sixty_days(mode: TimeoutMode, weather: &Weather) -> Figures {
    let mut figures = Figures::default();
    for index in 0..200 {
        let mut dice = Dice(index);
        let destination = Destination::new(index, &mut dice, weather);
        run(&destination, &mut dice, mode, &mut figures);
    }
    figures.timeouts_ms.sort_unstable();
    figures
}

/// Goal: the article's table is beaten, in ordinary weather and when every destination flaps daily.
/// Method: 200 destinations, with the fixed default and then adaptive, on the same dice.
#[test]
fn a_fleet_gets_short_timeouts_without_false_ones() {
    let ordinary = Weather { between: 8.0, least: 1.0 / 1_440.0, longest: 0.2 };
    let flapping = Weather { between: 0.7, least: 0.3 / 1_440.0, longest: 5.0 / 1_440.0 };
    for (weather, name) in [(ordinary, "ordinary"), (flapping, "flapping")] {
        let [fixed, adaptive] =
            [TimeoutMode::Default, TimeoutMode::Adaptive].map(|mode| sixty_days(mode, &weather));
        let false_share = |f: &Figures| f.false_timeouts as f64 / f.attempts as f64;
        let failed_share = |f: &Figures| f.failed_ms as f64 / f.busy_ms as f64;
        let median = |f: &Figures| f.timeouts_ms[f.timeouts_ms.len() / 2];
        for (mode, figures) in [("fixed", &fixed), ("adaptive", &adaptive)] {
            println!(
                "{name}, {mode}: {} attempts, {:.3}% false timeouts, median timeout {} ms, {:.1}% of the time on failures",
                figures.attempts,
                100.0 * false_share(figures),
                median(figures),
                100.0 * failed_share(figures),
            );
        }
        assert!(false_share(&adaptive) < 0.001, "{name}");
        assert!(false_share(&adaptive) < false_share(&fixed), "{name}");
        assert!(median(&adaptive) <= 3_200, "{name}");
        assert!(failed_share(&adaptive) < failed_share(&fixed), "{name}");
    }
}
