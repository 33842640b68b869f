//! Between what is committed and what the machine knows of it lies a moment: in it others read, or the process dies.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use tidegate_core::delivery::{Delivery, OwnTime, Priority, Status};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{LaneState, LastStop};
use tidegate_core::order::Ordering;
use tidegate_core::policy::Policy;
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::refill::Refill;
use tidegate_core::settle::Incoming;
use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::{AccountNo, Dispatcher, Input, LaneId};

use super::node::{FAILED, Node, OK, one_at_a_time, ordered};

/// Readers see a commit before the machine hears of it, so a refill can bring a delivery first.
#[test]
fn what_a_refill_brought_is_not_sent_again_when_its_acceptance_is_heard_of() {
    for answer in [None, Some(FAILED), Some(OK)] {
        let mut node = Node::new(10);
        let state = LaneState::new(&Policy::default(), node.now);
        let lane = node.dispatcher.open(AccountNo(0), Arc::default(), state, true);
        let delivery = node.in_store(lane, |_| {});
        let id = delivery.id;
        node.backlog.push(delivery.clone());
        node.late = Some(vec![]);
        node.step(Input::Wake);
        assert_eq!(node.take_sent(), [id]);
        if let Some(outcome) = answer {
            node.answer(lane, id, outcome);
        }
        node.step(Input::Accepted { lane, delivery });
        assert_eq!(node.take_sent(), [], "after {answer:?}");
    }
}

/// Goal: what is left to the store is found there, however late its commit is.
/// Method: a refill is on its way when an attempt fails, so that its retry is left to the store; another one is on its way when
/// that is committed, and shows it as it is by then.
#[test]
fn a_retry_that_was_left_to_the_store_is_found_there() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    let stored = node.as_accepted(id);
    assert_eq!(node.take_sent(), [id]);
    (node.late, node.slow_refills) = (Some(vec![]), true);
    let answer = |node: &mut Node, deliveries| {
        node.step(Input::Refilled { lane, refill: Refill { deliveries, ..Refill::default() } });
    };
    node.step(Input::Behind { lane });
    node.answer(lane, id, FAILED);
    answer(&mut node, vec![stored.clone()]);
    let retry = node.settled.last().unwrap().clone();
    let Status::RetryScheduled { at, .. } = retry.status else { panic!("{retry:?}") };
    node.pass((at - node.now.wall).get());
    assert_eq!((node.take_sent(), node.refills), (vec![], 2), "it is only in the store");
    for (lane, mark) in node.late.take().unwrap() {
        node.step(Input::Saved { lane, mark });
    }
    let ready = Delivery { status: Status::Queued, ..retry };
    for _ in 0..2 {
        answer(&mut node, vec![ready.clone()]);
    }
    assert_eq!(node.take_sent(), [id], "after {} refills", node.refills);
}

/// Goal: what is hastened, and finds no room, is found in the store, however late its commit is.
/// Method: more are hastened than a lane has room for, while a refill is on its way that was read before: in it they wait for
/// their own time, too many for it to show them all.
#[test]
fn what_was_hastened_and_left_to_the_store_is_found_there() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    node.publish(lane);
    (node.late, node.slow_refills) = (Some(vec![]), true);
    let own_time = |node: &Node| Status::RetryScheduled {
        at: node.now.wall + Millis::days(365),
        reason: OwnTime::RetryBackoff,
    };
    for _ in 0..300 {
        let mut delivery = node.in_store(lane, |_| {});
        delivery.status = own_time(&node);
        node.step(Input::Hasten { lane, delivery: Box::new(delivery) });
    }
    node.step(Input::Behind { lane });
    let asked = node.refills;
    node.step(Input::Refilled { lane, refill: Refill::default() });
    assert_eq!(node.refills, asked, "not before the store has them");
    for (lane, mark) in node.late.take().unwrap() {
        node.step(Input::Saved { lane, mark });
    }
    assert_eq!(node.refills, asked + 1, "it looks again");
}

/// Whoever wants something of a delivery has read it before, and it may have been sent and have ended since.
#[test]
fn what_ended_after_it_was_read_is_not_sent_again() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    node.dispatcher.reads(true);
    let id = node.publish(lane);
    node.answer(lane, id, OK);
    assert_eq!(node.take_sent(), [id]);
    node.hasten(lane, id);
    assert_eq!(node.take_sent(), []);
    node.withdraw(lane, id);
    assert_eq!(node.settled.len(), 1, "it ended once: {:?}", node.settled);
    node.dispatcher.reads(false);
}

/// What an attempt led to is told when it is stored; what ended without one is told at once.
#[test]
fn only_the_answer_to_an_attempt_is_kept_back_until_it_is_stored() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let (sent, withdrawn) = (node.publish(lane), node.publish(lane));
    node.late = Some(vec![]);
    node.withdraw(lane, withdrawn);
    node.answer(lane, sent, OK);
    let is_ending = |id| node.dispatcher.lane(lane).is_ending(&node.as_accepted(id));
    assert!(is_ending(sent) && !is_ending(withdrawn), "{:?}", node.settled);
}

/// Goal: while the store is asked for more of what is urgent, nothing that is less so takes its turn.
/// Method: more of these than a lane has room for, one that is less urgent behind them, and a store that is slow to answer.
#[test]
fn what_is_more_urgent_and_only_in_the_store_goes_first() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    node.slow_refills = true;
    let urgent: Vec<_> =
        (0..300).map(|_| node.publish_as(lane, |event| event.priority = Priority::CRITICAL)).collect();
    let bulk = node.publish_as(lane, |event| event.priority = Priority::BULK);
    let first = node.drain(lane);
    assert!(urgent.starts_with(&first) && first.len() < urgent.len(), "{first:?}");
    let rest = &urgent[first.len()..];
    let deliveries = rest.iter().map(|id| node.as_accepted(*id)).collect();
    node.step(Input::Refilled { lane, refill: Refill { deliveries, ..Refill::default() } });
    let mut then = node.drain(lane);
    while then.len() <= rest.len() {
        let deliveries = rest[then.len()..].iter().map(|id| node.as_accepted(*id)).collect();
        node.step(Input::Refilled { lane, refill: Refill { deliveries, ..Refill::default() } });
        let more = node.drain(lane);
        assert_ne!(more, [], "after {then:?}");
        then.extend(more);
    }
    assert_eq!(then, [rest, &[bulk]].concat());
}

/// Goal: no run of crashes starts more than a full bucket allows.
/// Method: lives in which nothing is ever committed, without a moment between them. Each may send until it waits for that.
#[test]
fn crashes_in_a_row_add_no_tokens() {
    let quota = Quota::new(1, Per::Hour, Some(12)).unwrap();
    let policy = Arc::new(Policy {
        rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }),
        ..Policy::default()
    });
    let mut node = Node::new(100);
    node.late = Some(vec![]);
    let stored = LaneState::new(&policy, node.now).save(&policy, node.now);
    let mut started = 0;
    for life in 0..4 {
        let stop = if life == 0 { LastStop::Clean } else { LastStop::Crash };
        let state = stored.clone().restore(&policy, node.now, stop);
        node.dispatcher = Dispatcher::new(100);
        let lane = node.dispatcher.open(AccountNo(0), Arc::clone(&policy), state, false);
        for _ in 0..20 {
            node.publish(lane);
        }
        started += node.drain(lane).len();
    }
    assert_eq!(started, 5, "as many as may wait for their commit, once");
}

/// What waited goes on with the commit that has the forfeit.
#[test]
fn a_lane_goes_on_after_a_crash_when_what_it_forfeited_is_stored() {
    let quota = Quota::new(1, Per::Hour, Some(12)).unwrap();
    let policy = Arc::new(Policy {
        rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }),
        ..Policy::default()
    });
    let mut node = Node::new(100);
    let saved = LaneState::new(&policy, node.now).save(&policy, node.now);
    let state = saved.restore(&policy, node.now, LastStop::Crash);
    let lane = node.dispatcher.open(AccountNo(0), policy, state, false);
    let waiting = node.publish(lane);
    assert_eq!(node.take_sent(), []);
    let mark = node.dispatcher.lane(lane).mark();
    node.step(Input::Saved { lane, mark });
    assert_eq!(node.take_sent(), [waiting]);
}

/// What happens around a lane that keeps an order, while what waits is partly here and partly in the store.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Something is committed, and the lane is told of it.
    Told { key: u8 },
    /// Something is committed, and the lane is told only that there is something.
    Hinted { key: u8 },
    /// A refill that was asked for is read, or what was read arrives.
    Refill,
    /// The first of those in flight is answered.
    Answer { well: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_u8).prop_map(|key| Step::Told { key }),
        1 => (0..3_u8).prop_map(|key| Step::Hinted { key }),
        4 => Just(Step::Refill),
        3 => prop::bool::weighted(0.8).prop_map(|well| Step::Answer { well }),
    ];
    prop::collection::vec(step, 1..80)
}

/// A lane that keeps an order, and the store behind it.
struct Shop {
    node: Node,
    lane: LaneId,
    ordering: Ordering,
    /// What is open.
    store: Vec<Delivery>,
    settles: usize,
    answered: usize,
    read: Option<Vec<Delivery>>,
    in_flight: VecDeque<DeliveryId>,
}

impl Shop {
    fn new(ordering: Ordering) -> Self {
        let mut node = Node::new(10);
        let policy = Arc::new(ordered(ordering));
        let state = LaneState::new(&policy, node.now);
        let lane = node.dispatcher.open(AccountNo(0), policy, state, true);
        node.slow_refills = true;
        node.step(Input::Wake);
        let (store, in_flight) = (vec![], VecDeque::new());
        Self { node, lane, ordering, store, settles: 0, answered: 0, read: None, in_flight }
    }

    fn step(&mut self, step: Step) {
        let lane = self.lane;
        match step {
            Step::Told { key } | Step::Hinted { key } => {
                let named = |event: &mut Incoming| event.ordering_key = Some(format!("key-{key}").into());
                let delivery = self.node.in_store(lane, named);
                self.store.push(delivery.clone());
                let told = matches!(step, Step::Told { .. });
                self.node.step(if told {
                    Input::Accepted { lane, delivery }
                } else {
                    Input::Behind { lane }
                });
            }
            Step::Refill => match self.read.take() {
                Some(deliveries) => {
                    self.answered += 1;
                    let refill = Refill { deliveries, ..Refill::default() };
                    self.node.step(Input::Refilled { lane, refill });
                }
                None if self.node.refills > self.answered => self.read = Some(self.store.clone()),
                None => {}
            },
            Step::Answer { well } => {
                let Some(id) = self.in_flight.pop_front() else { return };
                let tried = self.node.status(id).is_some();
                self.node.answer(lane, id, if well || tried { OK } else { FAILED });
            }
        }
        self.look();
    }

    /// Commits what was settled. Whatever is sent is the first of its line that is open.
    fn look(&mut self) {
        for settled in &self.node.settled[self.settles..] {
            self.store.retain(|delivery| delivery.id != settled.id || !settled.status.is_final());
            let before = self.store.iter_mut().find(|delivery| delivery.id == settled.id);
            before.into_iter().for_each(|before| before.clone_from(settled));
        }
        self.settles = self.node.settled.len();
        for id in self.node.take_sent() {
            let sent = self.store.iter().find(|delivery| delivery.id == id).expect("it is open");
            let line = self.ordering.line(sent);
            let mut of_line = self.store.iter().filter(|delivery| self.ordering.line(delivery) == line);
            let first = of_line.next().map(|delivery| delivery.place.sequence);
            assert_eq!(Some(sent.place.sequence), first, "it passed by the first of {line:?}");
            self.in_flight.push_back(id);
        }
    }
}

proptest! {
    /// Goal: a line keeps its order, and comes to its end, whatever the lane hears of by itself, and whatever only the store has.
    /// Method: everything is committed in order; what is read is what is committed by then, and arrives at any time.
    #[test]
    fn nothing_passes_by_what_only_the_store_has(steps in steps(), fifo: bool) {
        let mut shop = Shop::new(if fifo { Ordering::Fifo } else { Ordering::Key });
        steps.into_iter().for_each(|step| shop.step(step));
        for _ in 0..400 {
            shop.step(Step::Refill);
            shop.step(Step::Answer { well: true });
            shop.node.pass(1_000);
            shop.look();
        }
        prop_assert!(shop.store.is_empty(), "left over: {:?}", shop.store);
    }
}
