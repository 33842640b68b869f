//! Counts what happens in a run, for each destination. Its memory grows with what is waiting, not with what has passed.

use std::collections::{BTreeMap, HashMap};

use tidegate_core::breaker::BreakerChange;
use tidegate_core::delivery::{Delivery, End, HoldReason, OwnTime, Status};
use tidegate_core::sketch::Sketch;
use tidegate_core::time::{Millis, Mono, Timestamp};
use tidegate_engine::dispatcher::LaneId;

use super::figures::{Backlog, Ends, Figures, Longest, Total, percentile};
use crate::run::{Note, Observer, View};

/// Time for each reason, in the order of [`HoldReason::ALL`].
type ByReason = [Millis; HoldReason::ALL.len()];

/// Watches a run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    lanes: Vec<LaneTally>,
    /// Open deliveries by their sequence.
    open: HashMap<u64, Waiting>,
    in_flight: u32,
    peak_in_flight: u32,
    backlog: Backlog,
}

#[derive(Debug, Default)]
struct LaneTally {
    accepted: u64,
    ends: Ends,
    requests: u64,
    attempts: BTreeMap<&'static str, u64>,
    latency: Sketch,
    longest: Option<Longest>,
    held: ByReason,
    in_flight: u32,
    peak_in_flight: u32,
    minute: i64,
    in_minute: u64,
    busiest_minute: u64,
    breaker_opened: u64,
    throttle_episodes: u64,
    disabled_at: Option<Timestamp>,
}

/// A delivery that has not ended.
#[derive(Debug)]
struct Waiting {
    /// When it could have gone: on acceptance, or at the time asked for.
    due: Mono,
    /// How long its destination had been held by then.
    held: ByReason,
}

impl Tally {
    /// For so many destinations.
    pub(super) fn new(destinations: usize) -> Self {
        Self { lanes: (0..destinations).map(|_| LaneTally::default()).collect(), ..Self::default() }
    }

    fn accepted(&mut self, view: &View<'_>, lane: LaneId, delivery: &Delivery) {
        let held = self.lanes[lane.index()].held_until(view, lane);
        let tally = &mut self.lanes[lane.index()];
        tally.accepted += 1;
        let now = view.now;
        let due = match delivery.status {
            Status::Final(end) => return tally.ends.add(end),
            Status::RetryScheduled { at, reason: OwnTime::Scheduled } => {
                Mono::from_millis(now.mono.as_millis() + (at - now.wall).get().max(0))
            }
            _ => now.mono,
        };
        self.open.insert(delivery.place.sequence, Waiting { due, held });
    }

    fn ended(&mut self, view: &View<'_>, lane: LaneId, delivery: &Delivery, end: End) {
        let held = self.lanes[lane.index()].held_until(view, lane);
        let tally = &mut self.lanes[lane.index()];
        tally.ends.add(end);
        let Some(waiting) = self.open.remove(&delivery.place.sequence) else { return };
        let wait = view.now.mono.since(waiting.due);
        if end == End::Delivered {
            tally.latency.record(wait);
        }
        if tally.longest.is_none_or(|longest| wait > longest.wait) {
            let reason = waiting.mostly(wait, &held, delivery.attempts_made > 1);
            tally.longest = Some(Longest { wait, reason });
        }
    }

    /// The figures of each destination, by its name and account. `open` says how many of its deliveries are open.
    pub(super) fn figures<'a>(
        &self,
        open: impl Fn(usize) -> usize,
        names: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<Figures> {
        let figures = |(index, ((name, account), lane)): (usize, ((&str, &str), &LaneTally))| {
            let held = HoldReason::ALL.iter().zip(lane.held).filter(|(_, held)| *held > Millis::ZERO);
            Figures {
                name: name.to_owned(),
                account: account.to_owned(),
                accepted: lane.accepted,
                ends: lane.ends,
                still_open: open(index) as u64,
                requests: lane.requests,
                attempts: lane.attempts.clone(),
                p50_ms: percentile(&lane.latency, 5_000).map(Millis::get),
                p99_ms: percentile(&lane.latency, 9_900).map(Millis::get),
                longest_wait_ms: lane.longest.map(|longest| longest.wait.get()),
                longest_wait_reason: lane.longest.map(|longest| longest.reason),
                held_seconds: held.map(|(reason, held)| (reason.word(), held.as_secs_f64())).collect(),
                peak_in_flight: lane.peak_in_flight,
                busiest_minute: lane.busiest_minute,
                breaker_opened: lane.breaker_opened,
                throttle_episodes: lane.throttle_episodes,
                disabled_at: lane.disabled_at.map(|at| at.to_string()),
            }
        };
        names.zip(&self.lanes).enumerate().map(figures).collect()
    }

    /// All destinations together; `figures` are what [`figures`](Self::figures) gave.
    pub(super) fn total(&self, figures: &[Figures]) -> Total {
        let mut total =
            Total { peak_in_flight: self.peak_in_flight, backlog: self.backlog, ..Total::default() };
        for (lane, figures) in self.lanes.iter().zip(figures) {
            total.accepted += lane.accepted;
            total.still_open += figures.still_open;
            total.requests += lane.requests;
            total.ends.delivered += lane.ends.delivered;
            total.ends.dead_letter += lane.ends.dead_letter;
            total.ends.expired += lane.ends.expired;
            total.ends.cancelled += lane.ends.cancelled;
            for (word, count) in &lane.attempts {
                *total.attempts.entry(word).or_default() += count;
            }
            total.latency.merge(&lane.latency);
            let longer =
                |longest: &Longest| total.longest.as_ref().is_none_or(|(_, other)| longest.wait > other.wait);
            if let Some(longest) = lane.longest.filter(longer) {
                total.longest = Some((figures.name.clone(), longest));
            }
        }
        total
    }
}

impl Backlog {
    fn watch(&mut self, view: &View<'_>) {
        let waiting = view.backing.open_total().saturating_sub(view.dispatcher.in_flight() as usize);
        if waiting > self.most {
            *self = Self { most: waiting, at: Some(view.now.wall), drained_at: None };
        } else if waiting == 0 && self.drained_at.is_none() {
            self.drained_at = Some(view.now.wall);
        }
    }
}

impl LaneTally {
    /// How long it has been held in all, with what holds it now.
    fn held_until(&self, view: &View<'_>, lane: LaneId) -> ByReason {
        let mut held = self.held;
        if let Some((reason, since)) = view.dispatcher.lanes().get(lane.index()).and_then(|lane| lane.held())
        {
            held[place(reason)] += positive(view.now.wall - since);
        }
        held
    }

    fn sent(&mut self, now: Timestamp) {
        self.requests += 1;
        self.in_flight += 1;
        self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
        let minute = now.as_millis().div_euclid(60_000);
        if minute != self.minute {
            (self.minute, self.in_minute) = (minute, 0);
        }
        self.in_minute += 1;
        self.busiest_minute = self.busiest_minute.max(self.in_minute);
    }
}

impl Waiting {
    /// What it waited for most: what held its destination meanwhile; what is left is its own retries, or the queue.
    fn mostly(&self, wait: Millis, held: &ByReason, retried: bool) -> &'static str {
        let behind = held.iter().zip(self.held).map(|(now, then)| positive(*now - then));
        let own = positive(behind.clone().fold(wait, |left, held| left - held));
        let longest = HoldReason::ALL.iter().zip(behind).max_by_key(|(_, held)| *held);
        match longest {
            Some((reason, held)) if held >= own && held > Millis::ZERO => reason.word(),
            _ if retried => HoldReason::RetryBackoff.word(),
            _ => "queue",
        }
    }
}

impl Observer for Tally {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Accepted(lane, delivery) => self.accepted(view, *lane, delivery),
            Note::Sent(lane, _) => {
                self.in_flight += 1;
                self.peak_in_flight = self.peak_in_flight.max(self.in_flight);
                self.lanes[lane.index()].sent(view.now.wall);
            }
            Note::Answered(lane, _, answer) => {
                self.in_flight -= 1;
                let tally = &mut self.lanes[lane.index()];
                tally.in_flight -= 1;
                *tally.attempts.entry(answer.report.outcome.word()).or_default() += 1;
            }
            Note::Settled(lane, delivery) => {
                if let Status::Final(end) = delivery.status {
                    self.ended(view, *lane, delivery, end);
                }
            }
            Note::Held(lane, reason, since, until) => {
                self.lanes[lane.index()].held[place(*reason)] += positive(*until - *since);
            }
            Note::Changed(lane, change) => {
                let tally = &mut self.lanes[lane.index()];
                tally.breaker_opened +=
                    u64::from(matches!(change.breaker, Some(BreakerChange::Opened { .. })));
                tally.throttle_episodes += u64::from(change.throttled);
                if change.disabled.is_some() {
                    tally.disabled_at.get_or_insert(view.now.wall);
                }
            }
            Note::Stepped => self.backlog.watch(view),
            Note::Crashed => {
                self.in_flight = 0;
                for lane in view.dispatcher.lanes() {
                    let tally = &mut self.lanes[lane.id().index()];
                    tally.in_flight = 0;
                    // The hold goes on, but the lane that would have told of it is no more.
                    tally.held = tally.held_until(view, lane.id());
                }
            }
            _ => {}
        }
    }
}

fn place(reason: HoldReason) -> usize {
    HoldReason::ALL.iter().position(|known| *known == reason).expect("all reasons are listed")
}

/// A clock that was set back makes no time undone.
fn positive(length: Millis) -> Millis {
    length.max(Millis::ZERO)
}
