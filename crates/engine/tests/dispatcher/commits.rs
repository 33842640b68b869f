//! Between what is committed and what the machine knows of it lies a moment: in it others read, or the process dies.

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, Status};
use tidegate_core::lane::{LaneState, LastStop};
use tidegate_core::policy::Policy;
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::refill::Refill;
use tidegate_engine::dispatcher::{AccountNo, Dispatcher, Input};

use super::node::{FAILED, Node, OK};

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
