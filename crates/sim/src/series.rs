//! A run over time, in equal steps: what came in, what went out, what waited and why, what was in flight.

use serde::Serialize;
use tidegate_core::delivery::HoldReason;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};

use crate::run::{Note, Observer, View};

/// A growing backlog is counted again when it is larger by so many percent: each count looks at every lane.
const MORE_BY: usize = 5;

/// Figures in equal steps of time. Collected by watching; its size does not grow with the run.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// When the first step begins, in milliseconds since 1970.
    pub from_ms: i64,
    /// The length of a step, in milliseconds.
    pub step_ms: i64,
    /// The steps.
    pub steps: Vec<Step>,
    #[serde(skip)]
    to: Timestamp,
    /// The one destination that is looked at; `None`: all.
    #[serde(skip)]
    only: Option<usize>,
    /// How many of the steps are over: the state at their end is known.
    #[serde(skip)]
    over: usize,
    /// Deliveries that waited when the waiting ones of the last step were counted by reason.
    #[serde(skip)]
    counted: usize,
}

/// One step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Step {
    /// Deliveries accepted in it.
    pub arrived: u32,
    /// Requests begun in it.
    pub sent: u32,
    /// Of the answers in it, those that were successes …
    pub succeeded: u32,
    /// … those that were 429 …
    pub throttled: u32,
    /// … and all others.
    pub failed: u32,
    /// Requests in flight at its end.
    pub in_flight: u32,
    /// Requests in flight at most.
    pub peak_in_flight: u32,
    /// Deliveries that waited when most waited in it, by what held their destination, in the order of
    /// [`HoldReason::ALL`].
    pub held: [u32; HoldReason::ALL.len()],
    /// Deliveries that waited then with nothing holding their destination.
    pub waiting: u32,
}

impl Series {
    /// `steps` equal steps from `from` to `to`.
    pub fn new(from: Timestamp, to: Timestamp, steps: u32) -> Self {
        let step_ms = ((to - from).get() / i64::from(steps.max(1))).max(1);
        // What a division leaves over is left out: a last step cut short would look like a sudden change.
        let to = from + Millis::new(step_ms.saturating_mul(i64::from(steps.max(1))));
        let steps = Vec::with_capacity(steps as usize);
        Self { from_ms: from.as_millis(), step_ms, steps, to, only: None, over: 0, counted: 0 }
    }
    /// Steps of a round length from `from` on, at most `most` of them, that cover `length` or a little more.
    pub fn in_round_steps(from: Timestamp, length: Millis, most: u32) -> Self {
        const ROUND: [Millis; 19] = [
            Millis::seconds(1),
            Millis::seconds(2),
            Millis::seconds(5),
            Millis::seconds(10),
            Millis::seconds(15),
            Millis::seconds(30),
            Millis::minutes(1),
            Millis::minutes(2),
            Millis::minutes(5),
            Millis::minutes(10),
            Millis::minutes(15),
            Millis::minutes(30),
            Millis::hours(1),
            Millis::hours(2),
            Millis::hours(3),
            Millis::hours(6),
            Millis::hours(12),
            Millis::days(1),
            Millis::days(2),
        ];
        let length = length.get().max(1);
        let needed = |step: i64| length / step + i64::from(length % step != 0);
        let few = |step: &i64| needed(*step) <= i64::from(most.max(1));
        let step = ROUND.into_iter().map(Millis::get).find(few).unwrap_or(length);
        let steps = u32::try_from(needed(step)).unwrap_or(u32::MAX);
        Self::new(from, from + Millis::new(step.saturating_mul(needed(step))), steps)
    }
    /// The same for one destination, by its place in the set-up.
    #[must_use]
    pub const fn of(mut self, destination: usize) -> Self {
        self.only = Some(destination);
        self
    }

    /// The length of a step.
    pub const fn step(&self) -> Millis {
        Millis::new(self.step_ms)
    }

    fn current(&mut self, view: &View<'_>) -> Option<&mut Step> {
        let wall = view.now.wall;
        if wall >= self.to || wall.as_millis() < self.from_ms {
            return None;
        }
        let index = usize::try_from((wall.as_millis() - self.from_ms) / self.step_ms).ok()?;
        // Time passed without a word of it: the clock was set forward.
        while self.steps.len() <= index {
            self.close(view);
            self.begin();
        }
        self.steps.get_mut(index)
    }

    /// Nothing happens until `to`: every step that ends before has this state at its end.
    fn pass(&mut self, view: &View<'_>, to: Timestamp) {
        let to = to.min(self.to).as_millis();
        self.count_waiting(view, MORE_BY);
        while self.end_of_last() <= to {
            self.close(view);
            if self.end_of_last() >= self.to.as_millis() {
                return;
            }
            self.begin();
            self.count_waiting(view, MORE_BY);
        }
    }

    /// A new step: what is in flight goes on.
    fn begin(&mut self) {
        self.counted = 0;
        let in_flight = self.steps.last().map_or(0, |step| step.in_flight);
        self.steps.push(Step { peak_in_flight: in_flight, ..Step::default() });
    }

    /// Where the last step ends, in milliseconds since 1970.
    fn end_of_last(&self) -> i64 {
        let steps = i64::try_from(self.steps.len()).unwrap_or(i64::MAX);
        self.from_ms.saturating_add(self.step_ms.saturating_mul(steps))
    }

    /// The last step is over: what is the state at its end?
    fn close(&mut self, view: &View<'_>) {
        self.count_waiting(view, 0);
        let in_flight = self.in_flight(view);
        let over = self.steps.len();
        if let Some(step) = self.steps.last_mut().filter(|_| self.over < over) {
            step.in_flight = in_flight;
        }
        self.over = over;
    }

    fn in_flight(&self, view: &View<'_>) -> u32 {
        let of = |index: usize| view.dispatcher.lanes().get(index).map_or(0, |lane| lane.state().in_flight);
        self.only.map_or_else(|| view.dispatcher.in_flight(), of)
    }
    fn open(&self, view: &View<'_>) -> usize {
        let of = |index: usize| {
            view.dispatcher.lanes().get(index).map_or(0, |lane| view.backing.open_count(lane.id()))
        };
        self.only.map_or_else(|| view.backing.open_total(), of)
    }

    /// Counts what waits by reason, if more waits than when that was last done in this step, by so many percent.
    fn count_waiting(&mut self, view: &View<'_>, more_by: usize) {
        if self.over == self.steps.len() {
            return;
        }
        let waiting = self.open(view).saturating_sub(self.in_flight(view) as usize);
        if waiting <= self.counted + self.counted * more_by / 100 {
            return;
        }
        let Some(step) = self.steps.last_mut() else { return };
        self.counted = waiting;
        (step.held, step.waiting) = Default::default();
        let concerns = |index: usize| self.only.is_none_or(|only| only == index);
        for lane in view.dispatcher.lanes().iter().filter(|lane| concerns(lane.id().index())) {
            let open = view.backing.open_count(lane.id());
            let waiting = u32::try_from(open).unwrap_or(u32::MAX).saturating_sub(lane.state().in_flight);
            if waiting == 0 {
                continue;
            }
            match lane.held() {
                Some((reason, _)) => {
                    let place = HoldReason::ALL
                        .iter()
                        .position(|known| *known == reason)
                        .expect("all reasons are listed");
                    step.held[place] += waiting;
                }
                None => step.waiting += waiting,
            }
        }
    }
}

impl Observer for Series {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let lane = match note {
            Note::Accepted(lane, _) | Note::Sent(lane, _) | Note::Answered(lane, ..) => lane,
            Note::Passes { to } => return self.pass(view, *to),
            _ => return,
        };
        if self.only.is_some_and(|only| only != lane.index()) {
            return;
        }
        let in_flight = self.in_flight(view);
        let Some(step) = self.current(view) else { return };
        match note {
            Note::Accepted(..) => step.arrived += 1,
            Note::Sent(..) => {
                step.sent += 1;
                step.peak_in_flight = step.peak_in_flight.max(in_flight);
            }
            Note::Answered(_, _, answer) => {
                *match answer.report.outcome {
                    Outcome::Success { .. } => &mut step.succeeded,
                    Outcome::RateLimited { .. } => &mut step.throttled,
                    _ => &mut step.failed,
                } += 1;
            }
            _ => {}
        }
    }
}
