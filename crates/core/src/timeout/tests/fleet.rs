//! A fleet of modelled destinations over sixty days, as in the article that the adaptive timeout comes from.

use super::super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Uniform numbers from a seed (splitmix64): the same fleet each time.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// Between `low` and `high`, each factor of two as likely as another.
    fn spread(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

struct Destination {
    median_ms: f64,
    sigma: f64,
    /// Share of answers that take `tail_ms` instead.
    tail: f64,
    tail_ms: f64,
    /// Share of requests that are never answered.
    hang: f64,
    per_day: f64,
    outages: Vec<(i64, i64)>,
}

const DAY: i64 = 86_400_000;

impl Destination {
    fn new(dice: &mut Dice, index: usize) -> Self {
        let mut outages = Vec::new();
        let mut at = dice.exponential(0.7);
        while at < 60.0 {
            let length = dice.spread(0.3 / 1440.0, 5.0/1440.0);
            outages.push(((at * DAY as f64) as i64, ((at + length) * DAY as f64) as i64));
            at += length + dice.exponential(0.7);
        }
        let slow = index % 8 == 0;
        let (median_ms, sigma) = if slow {
            (dice.spread(4_000.0, 8_000.0), 0.1 + 0.25 * dice.uniform())
        } else {
            (dice.spread(40.0, 1_000.0), 0.3 + 0.6 * dice.uniform())
        };
        let tail = if index % 10 == 3 { 0.008 } else { 0.0 };
        let hang = if index % 4 == 1 { 0.002 } else { 0.0 };
        Self { median_ms, sigma, tail, tail_ms: dice.spread(3_000.0, 12_000.0), hang, per_day: dice.spread(40.0, 3_000.0), outages }
    }
    /// How long an answer would take, none if it never comes.
    fn latency(&self, dice: &mut Dice, at: i64) -> Option<i64> {
        if self.outages.iter().any(|&(from, to)| from <= at && at < to) || dice.uniform() < self.hang {
            return None;
        }
        let ms = if dice.uniform() < self.tail { self.tail_ms } else { self.median_ms * (self.sigma * dice.normal()).exp() };
        Some(ms as i64)
    }
}

#[derive(Default, Debug)]
struct Figures {
    attempts: u64,
    false_timeouts: u64,
    busy_ms: i64,
    failed_ms: i64,
    detect_ms: Vec<i64>,
    timeouts_by_day: Vec<i64>,
    changes: std::collections::BTreeMap<String, u32>,
}

fn simulate(dest: &Destination, dice: &mut Dice, mode: &TimeoutMode, fig: &mut Figures) -> Timeouts {
    let params = TimeoutParams::default();
    let mut t = Timeouts::new();
    let mut heap: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
    let mut at = 0.0;
    while at < 60.0 * DAY as f64 {
        heap.push(Reverse((at as i64, 0)));
        at += dice.exponential(DAY as f64 / dest.per_day);
    }
    let (mut in_row, mut open_until, mut open_for, mut half) = (0, None::<i64>, 30_000_i64, 0);
    let mut clock = 0_i64;
    let mut next_day = 0_i64;
    let mut outage_seen = -1_i64;
    while let Some(Reverse((due, tries))) = heap.pop() {
        if let Some(until) = open_until && due < until {
            heap.push(Reverse((until, tries)));
            continue;
        }
        let probe = open_until.is_some();
        clock = clock.max(due);
        while clock / DAY >= next_day {
            if next_day >= 31 { fig.timeouts_by_day.push(t.in_force(mode, &params).get()); }
            next_day += 1;
        }
        let timeout = if probe { t.for_probe(mode, &params) } else { t.in_force(mode, &params) };
        let latency = dest.latency(dice, due);
        let sample = match latency {
            Some(ms) if ms <= timeout.get() => Sample::Answered { elapsed: Millis::new(ms), probe },
            _ => Sample::TimedOut { timeout, probe },
        };
        let took = latency.unwrap_or(i64::MAX).min(timeout.get());
        let end = clock + took;
        let counted = due >= 31 * DAY;
        if counted {
            fig.attempts += 1;
            fig.busy_ms += took;
        }
        if let Some(change) = t.observe(Timestamp::from_millis(end.max(clock)), mode, &params, sample) {
            *fig.changes.entry(format!("{:?}", change.reason)).or_default() += 1;
            if std::env::var("TRACE").is_ok() { println!("day {:.1} {:?}", end as f64 / DAY as f64, change); }
        }
        if let Sample::TimedOut { .. } = sample {
            if counted {
                fig.failed_ms += took;
                fig.false_timeouts += u64::from(latency.is_some());
            }
            if tries < 4 { heap.push(Reverse((end + [30_000, 120_000, 600_000, 3_600_000][tries as usize], tries + 1))); }
            in_row += 1;
            if probe || in_row >= 5 {
                if !probe && counted && latency.is_none() && let Some(&(from, _)) = dest.outages.iter().find(|o| o.0 <= due && due < o.1) && from != outage_seen {
                    outage_seen = from;
                    fig.detect_ms.push(end - from);
                }
                open_for = if probe { (open_for * 2).min(600_000) } else { 30_000 };
                open_until = Some(end + open_for);
                half = 0;
                t.breaker_opened();
            }
        } else {
            in_row = 0;
            if probe {
                half += 1;
                if half >= 2 { open_until = None; t.breaker_closed(); }
            }
        }
    }
    t
}

#[test]
fn explore() {
    for mode in [TimeoutMode::Default, TimeoutMode::Adaptive] {
        let mut dice = Dice(7);
        let mut fig = Figures::default();
        let mut worst = vec![];
        for index in 0..200 {
            let dest = Destination::new(&mut dice, index);
            let mut own = Figures::default();
            let mut d2 = Dice(index as u64 * 77);
            let _t = simulate(&dest, &mut d2, &mode, &mut own);
            let mut days = own.timeouts_by_day.clone();
            days.sort_unstable();
            worst.push((own.false_timeouts as f64 / own.attempts.max(1) as f64, index, days.get(days.len() / 2).copied(), dest.median_ms as i64, dest.sigma, dest.tail, dest.tail_ms as i64, dest.hang, dest.per_day as i64, own.changes.clone()));
            fig.attempts += own.attempts; fig.false_timeouts += own.false_timeouts; fig.busy_ms += own.busy_ms; fig.failed_ms += own.failed_ms;
            fig.detect_ms.extend(own.detect_ms); fig.timeouts_by_day.extend(own.timeouts_by_day);
            for (k, v) in own.changes { *fig.changes.entry(k).or_default() += v; }
        }
        fig.timeouts_by_day.sort_unstable();
        fig.detect_ms.sort_unstable();
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("{mode:?}: attempts {} false {:.3}% median timeout {} mean {} failed share {:.1}% detect median {:?} mean {} changes {:?}", fig.attempts,
            100.0 * fig.false_timeouts as f64 / fig.attempts as f64, fig.timeouts_by_day[fig.timeouts_by_day.len() / 2],
            fig.timeouts_by_day.iter().sum::<i64>() / fig.timeouts_by_day.len() as i64,
            100.0 * fig.failed_ms as f64 / fig.busy_ms as f64, fig.detect_ms.get(fig.detect_ms.len() / 2), fig.detect_ms.iter().sum::<i64>() / fig.detect_ms.len().max(1) as i64, fig.changes);
        if mode == TimeoutMode::Adaptive {
        for w in &worst[..25] { println!("{w:?}"); }
        worst.sort_by_key(|w| w.2);
        println!("slowest timeouts");
        for w in worst.iter().rev().filter(|w| w.3 < 3000).take(60) { println!("{w:?}"); }
        }
    }
}
