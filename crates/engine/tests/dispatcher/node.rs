//! A node by hand, and the policies that several tests use.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_core::delivery::{Delivery, HoldReason, Status, Withdrawn};
use tidegate_core::draw::Draw;
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{LaneState, Report};
use tidegate_core::order::Ordering;
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::refill::Refill;
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::settle::{Incoming, Terms, accept};
use tidegate_core::time::{Millis, Mono, Now};
use tidegate_engine::dispatcher::{AccountNo, Command, Dispatcher, Effect, Input, LaneId, Mark};

pub(crate) const OK: Outcome = Outcome::Success { status: 200 };
pub(crate) const FAILED: Outcome = Outcome::HttpError { status: 500 };

/// A node by hand: every step's sends and settles are kept for the test to look at.
pub(crate) struct Node {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) now: Now,
    pub(crate) sequence: u64,
    pub(crate) sent: VecDeque<(LaneId, DeliveryId)>,
    pub(crate) settled: Vec<Delivery>,
    pub(crate) holds: Vec<(HoldReason, Millis)>,
    pub(crate) notices: usize,
    /// Everything that was accepted, as it came in.
    pub(crate) accepted: Vec<Delivery>,
    /// Commits are late: what is to be saved waits here.
    pub(crate) late: Option<Vec<(LaneId, Mark)>>,
    /// What is in the store besides what was published, until it is sent; and how many refills were asked for.
    pub(crate) backlog: Vec<Delivery>,
    pub(crate) refills: usize,
    /// Refills are asked for, and answered by hand.
    pub(crate) slow_refills: bool,
}

impl Node {
    pub(crate) fn new(slots: u32) -> Self {
        let now = Now::at(1_777_600_000_000);
        Self {
            dispatcher: Dispatcher::new(slots),
            now,
            sequence: 0,
            sent: VecDeque::new(),
            settled: vec![],
            holds: vec![],
            notices: 0,
            accepted: vec![],
            late: None,
            backlog: vec![],
            refills: 0,
            slow_refills: false,
        }
    }
    pub(crate) fn lane(&mut self, policy: Policy) -> LaneId {
        self.lane_of(0, policy)
    }
    pub(crate) fn lane_of(&mut self, account: u32, policy: Policy) -> LaneId {
        let state = LaneState::new(&policy, self.now);
        self.dispatcher.open(AccountNo(account), Arc::new(policy), state, false)
    }
    pub(crate) fn step(&mut self, input: Input) {
        let mut effects = vec![];
        self.dispatcher.step(self.now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Send { lane, sending } => {
                    self.backlog.retain(|delivery| delivery.id != sending.delivery);
                    self.sent.push_back((lane, sending.delivery));
                }
                Effect::Settle { lane, delivery, mark, .. } => {
                    self.settled.push(*delivery);
                    match &mut self.late {
                        Some(late) => late.push((lane, mark)),
                        None => self.step(Input::Saved { lane, mark }),
                    }
                }
                Effect::Held { reason, since, until, .. } => self.holds.push((reason, until - since)),
                Effect::Refill { lane } => {
                    self.refills += 1;
                    if self.slow_refills {
                        continue;
                    }
                    let deliveries = self.backlog.clone();
                    self.step(Input::Refilled { lane, refill: Refill { deliveries, ..Refill::default() } });
                }
                Effect::Changed { aftermath, .. } => {
                    self.notices += usize::from(aftermath.disabled.is_some());
                }
                Effect::SaveLane { .. } => {}
            }
        }
    }
    pub(crate) fn pass(&mut self, ms: i64) {
        let wall = self.now.wall + Millis::new(ms);
        self.now = Now { wall, mono: Mono::from_millis(self.now.mono.as_millis() + ms) };
        self.step(Input::Wake);
    }
    pub(crate) fn publish(&mut self, lane: LaneId) -> DeliveryId {
        self.publish_as(lane, |_| {})
    }
    pub(crate) fn publish_as(&mut self, lane: LaneId, change: impl FnOnce(&mut Incoming)) -> DeliveryId {
        let incoming = self.incoming(change);
        let id = incoming.id;
        let policy = self.dispatcher.lane(lane).policy().clone();
        let delivery = accept(self.now.wall, incoming, &policy, &Terms::default());
        self.accepted.push(delivery.clone());
        self.step(Input::Accepted { lane, delivery });
        id
    }
    /// A delivery that is only in the store.
    pub(crate) fn in_store(&mut self, lane: LaneId, change: impl FnOnce(&mut Incoming)) -> Delivery {
        let incoming = self.incoming(change);
        accept(self.now.wall, incoming, self.dispatcher.lane(lane).policy(), &Terms::default())
    }
    fn incoming(&mut self, change: impl FnOnce(&mut Incoming)) -> Incoming {
        self.sequence += 1;
        let id = DeliveryId::from_bits(self.sequence.into());
        let mut incoming = Incoming::new(id, self.sequence, EventType::parse("order.created").unwrap());
        change(&mut incoming);
        incoming
    }
    /// Withdraws one that was published here, as it was then.
    pub(crate) fn withdraw(&mut self, lane: LaneId, id: DeliveryId) {
        let delivery = Box::new(self.as_accepted(id));
        self.step(Input::Withdraw { lane, delivery, by: Withdrawn::ByRequest });
    }
    pub(crate) fn hasten(&mut self, lane: LaneId, id: DeliveryId) {
        let delivery = Box::new(self.as_accepted(id));
        self.step(Input::Hasten { lane, delivery });
    }
    pub(crate) fn as_accepted(&self, id: DeliveryId) -> Delivery {
        self.accepted.iter().find(|delivery| delivery.id == id).unwrap().clone()
    }
    /// How it last settled.
    pub(crate) fn status(&self, id: DeliveryId) -> Option<Status> {
        self.settled.iter().rev().find(|delivery| delivery.id == id).map(|delivery| delivery.status)
    }
    pub(crate) fn answer(&mut self, lane: LaneId, delivery: DeliveryId, outcome: Outcome) {
        let report = Report { outcome, elapsed: Millis::new(50), rate_hint: None };
        self.step(Input::Finished { lane, delivery, report, draw: Draw(0) });
    }
    pub(crate) fn command(&mut self, lane: LaneId, command: Command) {
        self.step(Input::Command { lane, command });
    }
    /// What was sent since the last look.
    pub(crate) fn take_sent(&mut self) -> Vec<DeliveryId> {
        self.sent.drain(..).map(|(_, id)| id).collect()
    }
    /// Answers everything with 200 as it is sent, until nothing is, and returns the order.
    pub(crate) fn drain(&mut self, lane: LaneId) -> Vec<DeliveryId> {
        let mut order = vec![];
        while let Some((_, id)) = self.sent.pop_front() {
            order.push(id);
            self.answer(lane, id, OK);
        }
        order
    }
    pub(crate) fn held(&self, lane: LaneId) -> Option<HoldReason> {
        self.dispatcher.lane(lane).held().map(|(reason, _)| reason)
    }
}

pub(crate) fn one_at_a_time() -> Policy {
    Policy { max_concurrency: Concurrency::new(1).unwrap(), ..Policy::default() }
}

pub(crate) fn ordered(ordering: Ordering) -> Policy {
    let retry = RetryPolicy::new(2, vec![Millis::seconds(10)], Jitter::None).unwrap();
    Policy { ordering, retry: Some(Arc::new(retry)), ..Policy::default() }
}

pub(crate) fn quiet_all_day_but_noon(bypass: &str) -> Policy {
    quiet_but_noon(vec![], vec![bypass.into()])
}

/// For these types only.
pub(crate) fn quiet_but_noon_for(types: &str) -> Policy {
    quiet_but_noon(vec![types.into()], vec![])
}

fn quiet_but_noon(applies_to: Vec<String>, bypass_event_types: Vec<String>) -> Policy {
    let spec = WindowSpec {
        timezone: "UTC".into(),
        quiet_start: "13:00".into(),
        quiet_end: "12:00".into(),
        days: vec![],
        applies_to,
        bypass_event_types,
    };
    Policy { quiet: QuietHours::new(vec![Window::parse(spec).unwrap()]).unwrap(), ..Policy::default() }
}
