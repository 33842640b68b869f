//! A run over time, in equal steps: what came in, what went out, what waited and why, what was in flight.

use serde::Serialize;
use tidegate_core::delivery::HoldReason;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};

use crate::run::{Note, Observer, View};

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
    /// Deliveries that wait at its end, by what holds their destination, in the order of [`HoldReason::ALL`].
    pub held: [u32; HoldReason::ALL.len()],
    /// Deliveries that wait at its end with nothing holding their destination.
    pub waiting: u32,
}

impl Series {
    /// `steps` equal steps from `from` to `to`.
    pub fn new(from: Timestamp, to: Timestamp, steps: u32) -> Self {
        let step_ms = ((to - from).get() / i64::from(steps.max(1))).max(1);
        Self { from_ms: from.as_millis(), step_ms, steps: Vec::with_capacity(steps as usize), to }
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
        while self.steps.len() <= index {
            self.close(view);
            self.steps.push(Step::default());
        }
        self.steps.get_mut(index)
    }

    /// The last step is over: what is the state at its end?
    fn close(&mut self, view: &View<'_>) {
        let Some(step) = self.steps.last_mut() else { return };
        step.in_flight = view.dispatcher.in_flight();
        for lane in view.dispatcher.lanes() {
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
        match note {
            Note::Accepted(..) => {
                if let Some(step) = self.current(view) {
                    step.arrived += 1;
                }
            }
            Note::Sent(..) => {
                if let Some(step) = self.current(view) {
                    step.sent += 1;
                }
            }
            Note::Answered(_, _, answer) => {
                if let Some(step) = self.current(view) {
                    let count = match answer.report.outcome {
                        Outcome::Success { .. } => &mut step.succeeded,
                        Outcome::RateLimited { .. } => &mut step.throttled,
                        _ => &mut step.failed,
                    };
                    *count += 1;
                }
            }
            _ => {}
        }
    }
}
