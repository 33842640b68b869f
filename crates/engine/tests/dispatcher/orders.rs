//! What people want: withdrawing, hastening, resuming, deleting, pausing; and a node that must not start anything.

use std::sync::Arc;

use tidegate_core::delivery::{Dead, Delivery, End, HoldReason, Status, Withdrawn};
use tidegate_core::gate::Hold;
use tidegate_core::order::{OnExhausted, Ordering, Turn};
use tidegate_core::outcome::Outcome;
use tidegate_core::policy::Policy;
use tidegate_core::settle::Incoming;
use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::{Command, Input, LaneId};

use crate::node::{FAILED, Node, OK, one_at_a_time, ordered};

const WITHDRAWN: Status = Status::Final(End::Cancelled(Withdrawn::ByRequest));
const PUT_ASIDE: Status = Status::Final(End::DeadLetter(Dead::PutAside));
const DELETED: Status = Status::Final(End::Cancelled(Withdrawn::DestinationDeleted));

fn withdraw(node: &mut Node, lane: LaneId, delivery: Delivery) {
    node.step(Input::Withdraw { lane, delivery: Box::new(delivery), by: Withdrawn::ByRequest });
}

fn in_an_hour(node: &Node) -> impl FnOnce(&mut Incoming) + use<> {
    let at = node.now.wall + Millis::hours(1);
    move |event| event.deliver_at = Some(at)
}

#[test]
fn what_is_only_in_the_store_is_withdrawn_by_its_lane_and_no_refill_brings_it_back() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let delivery = node.in_store(lane, |_| {});
    let id = delivery.id;
    withdraw(&mut node, lane, delivery.clone());
    assert_eq!(node.status(id), Some(WITHDRAWN));
    node.late = Some(vec![]);
    let other = node.in_store(lane, |_| {});
    withdraw(&mut node, lane, other.clone());
    // A refill that was read before the commit shows it as waiting.
    let refill = tidegate_core::refill::Refill { deliveries: vec![other], ..Default::default() };
    node.step(Input::Refilled { lane, refill });
    assert_eq!(node.take_sent(), []);
}

#[test]
fn one_that_is_over_but_not_yet_saved_stays_as_it_ended() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    node.late = Some(vec![]);
    let id = node.publish(lane);
    node.answer(lane, id, OK);
    node.withdraw(lane, id);
    node.hasten(lane, id);
    assert_eq!((node.settled.len(), node.status(id)), (1, Some(Status::Final(End::Delivered))));
}

#[test]
fn one_in_flight_that_fails_is_withdrawn_then() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    node.withdraw(lane, id);
    assert_eq!(node.status(id), None, "it is out");
    node.answer(lane, id, FAILED);
    assert_eq!(node.status(id), Some(WITHDRAWN));
}

#[test]
fn the_count_of_attempts_never_falls_when_the_store_is_behind() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy::default());
    node.late = Some(vec![]);
    // So many retries that the last one is left to the store before that has saved it.
    for _ in 0..1_100 {
        let id = node.publish(lane);
        node.answer(lane, id, Outcome::HttpError { status: 400 });
    }
    let lost = node.settled.last().unwrap().id;
    assert!(node.dispatcher.lane(lane).deliveries().all(|delivery| delivery.id != lost));
    node.withdraw(lane, lost);
    let ended = node.settled.iter().rev().find(|delivery| delivery.id == lost).unwrap();
    assert_eq!((ended.status, ended.attempts_made, ended.attempts_used), (WITHDRAWN, 1, 1));
}

#[test]
fn a_withdrawn_head_lets_the_next_of_its_line_go() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let (a, b) = (node.publish(lane), node.publish(lane));
    node.answer(lane, a, FAILED);
    assert_eq!(node.take_sent(), [a]);
    node.withdraw(lane, a);
    assert_eq!((node.status(a), node.take_sent()), (Some(WITHDRAWN), vec![b]));
}

#[test]
fn one_that_is_put_aside_is_dead_without_an_attempt_and_its_line_goes_on_or_halts() {
    for (on_exhausted, goes_on) in [(OnExhausted::Skip, true), (OnExhausted::Halt, false)] {
        let mut node = Node::new(1);
        let lane = node.lane(Policy { on_exhausted, ..ordered(Ordering::Fifo) });
        let (poison, next) = (node.publish(lane), node.publish(lane));
        assert_eq!(node.take_sent(), [poison]);
        node.step(Input::PutAside { lane, delivery: poison });
        let ended = node.settled.last().unwrap();
        assert_eq!((ended.status, ended.attempts_made), (PUT_ASIDE, 0));
        assert_eq!(node.take_sent(), if goes_on { vec![next] } else { vec![] });
    }
}

/// An attempt that was not made after all is none: nothing is written, and the delivery keeps its turn.
#[test]
fn one_that_was_not_sent_asks_its_gates_again() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let (first, second) = (node.publish(lane), node.publish(lane));
    assert_eq!(node.take_sent(), [first]);
    node.step(Input::NotSent { lane, delivery: first });
    assert_eq!((node.take_sent(), node.settled.len()), (vec![first], 0));
    node.answer(lane, first, OK);
    assert_eq!((node.take_sent(), node.settled[0].attempts_made), (vec![second], 1));
    node.withdraw(lane, second);
    node.step(Input::NotSent { lane, delivery: second });
    assert_eq!(node.status(second), Some(WITHDRAWN));
}

#[test]
fn one_that_is_put_aside_after_it_was_withdrawn_is_withdrawn() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    node.withdraw(lane, id);
    node.step(Input::PutAside { lane, delivery: id });
    assert_eq!(node.status(id), Some(WITHDRAWN));
}

#[test]
fn a_hastened_delivery_does_not_wait_for_its_own_time() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let later = in_an_hour(&node);
    let id = node.publish_as(lane, later);
    assert_eq!(node.take_sent(), []);
    node.hasten(lane, id);
    assert_eq!((node.take_sent(), node.status(id)), (vec![id], Some(Status::Queued)));
    node.hasten(lane, id);
    assert_eq!((node.take_sent(), node.settled.len()), (vec![], 1), "it is out already");
    node.answer(lane, id, FAILED);
    node.hasten(lane, id);
    assert_eq!(node.take_sent(), [id], "a retry need not wait either");
}

#[test]
fn a_hastened_delivery_may_be_one_that_only_the_store_has() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let later = in_an_hour(&node);
    let delivery = node.in_store(lane, later);
    let id = delivery.id;
    node.step(Input::Hasten { lane, delivery: Box::new(delivery.clone()) });
    assert_eq!(node.take_sent(), [id]);
    node.answer(lane, id, OK);
    let ended = Delivery { status: Status::Final(End::Delivered), ..delivery };
    node.step(Input::Hasten { lane, delivery: Box::new(ended) });
    assert_eq!(node.take_sent(), []);
}

#[test]
fn a_hastened_delivery_keeps_its_place_in_its_line() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let (a, b, c) = (node.publish(lane), node.publish(lane), node.publish(lane));
    node.hasten(lane, c);
    node.answer(lane, a, FAILED);
    node.take_sent();
    node.hasten(lane, c);
    assert_eq!(node.take_sent(), [], "the head of the line waits for its retry");
    node.hasten(lane, a);
    assert_eq!(node.drain(lane), [a, b, c]);
}

#[test]
fn a_deleted_destination_sends_nothing_more_and_asks_for_nothing() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let (out, waiting) = (node.publish(lane), node.publish(lane));
    let later = in_an_hour(&node);
    let timed = node.publish_as(lane, later);
    node.take_sent();
    let settled = node.settled.len();
    node.command(lane, Command::Retire);
    assert_eq!(node.settled.len(), settled, "what waits is withdrawn from the store by a job");
    assert_eq!(node.dispatcher.lane(lane).waiting(), 0);
    node.answer(lane, out, FAILED);
    assert_eq!(node.status(out), Some(DELETED));
    for id in [waiting, timed] {
        let delivery = Box::new(node.as_accepted(id));
        node.step(Input::Withdraw { lane, delivery, by: Withdrawn::DestinationDeleted });
        assert_eq!(node.status(id), Some(DELETED));
    }
    let late = node.publish(lane);
    assert_eq!(node.status(late), Some(DELETED), "accepted in the moment of the deletion");
    let refills = node.refills;
    node.step(Input::Adopt { lane, policy: Arc::new(ordered(Ordering::Key)) });
    node.command(lane, Command::Resume { skip_head: false });
    node.hasten(lane, timed);
    node.pass(7_200_000);
    assert_eq!((node.take_sent(), node.refills), (vec![], refills));
}

#[test]
fn what_is_out_when_its_destination_is_deleted_may_still_arrive() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    node.command(lane, Command::Retire);
    node.answer(lane, id, OK);
    assert_eq!(node.status(id), Some(Status::Final(End::Delivered)));
    assert_eq!(node.dispatcher.in_flight(), 0);
}

#[test]
fn a_deleted_destination_takes_no_refill_that_was_under_way() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let waiting = node.in_store(lane, |_| {});
    node.command(lane, Command::Retire);
    let refill = tidegate_core::refill::Refill { deliveries: vec![waiting], ..Default::default() };
    node.step(Input::Refilled { lane, refill });
    assert_eq!((node.take_sent(), node.dispatcher.lane(lane).waiting()), (vec![], 0));
}

#[test]
fn resuming_may_skip_the_head_that_blocks() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let (a, b, c) = (node.publish(lane), node.publish(lane), node.publish(lane));
    node.answer(lane, a, FAILED);
    node.take_sent();
    node.command(lane, Command::Resume { skip_head: false });
    assert_eq!(node.take_sent(), [], "its retry keeps the turn");
    node.command(lane, Command::Resume { skip_head: true });
    assert_eq!((node.status(a), node.take_sent()), (Some(WITHDRAWN), vec![b]));
    node.command(lane, Command::Resume { skip_head: true });
    node.answer(lane, b, FAILED);
    assert_ne!(node.status(b), Some(WITHDRAWN), "its first attempt was out: it had not failed");
    node.pass(60_000);
    assert_eq!(node.take_sent(), [b]);
    node.command(lane, Command::Resume { skip_head: true });
    assert_eq!(node.take_sent(), [], "one that is out is waited for");
    node.answer(lane, b, FAILED);
    assert_eq!((node.status(b), node.take_sent()), (Some(WITHDRAWN), vec![c]));
}

#[test]
fn resuming_skips_no_head_that_has_not_failed() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    node.command(lane, Command::Pause);
    let (a, b) = (node.publish(lane), node.publish(lane));
    node.command(lane, Command::Resume { skip_head: true });
    assert_eq!((node.status(a), node.take_sent()), (None, vec![a]));
    node.answer(lane, a, Outcome::RateLimited { retry_after: None });
    node.command(lane, Command::Resume { skip_head: true });
    assert_ne!(node.status(a), Some(WITHDRAWN), "to be told to come later is no failure");
    node.pass(60_000);
    assert_eq!(node.take_sent(), [a]);
    node.answer(lane, a, OK);
    assert_eq!(node.take_sent(), [b]);
}

#[test]
fn a_halted_key_shows_on_its_destination_which_goes_on() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy { on_exhausted: OnExhausted::Halt, ..ordered(Ordering::Key) });
    let (a, b) = (
        node.publish_as(lane, |event| event.ordering_key = Some("a".into())),
        node.publish_as(lane, |event| event.ordering_key = Some("b".into())),
    );
    node.answer(lane, a, Outcome::Gone);
    node.answer(lane, b, Outcome::Gone);
    let machine = node.dispatcher.lane(lane);
    assert_eq!(machine.holds(node.now), [Hold::HaltedForSome { head: a, lines: 2 }]);
    assert_eq!(machine.status(node.now).word(), "active");
    node.command(lane, Command::Resume { skip_head: false });
    assert_eq!(node.dispatcher.lane(lane).holds(node.now), []);
}

#[test]
fn resuming_a_halted_line_skips_nothing_more_than_the_dead() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy { on_exhausted: OnExhausted::Halt, ..ordered(Ordering::Fifo) });
    let (a, b) = (node.publish(lane), node.publish(lane));
    node.answer(lane, a, Outcome::Gone);
    node.take_sent();
    let waiting = node.as_accepted(b);
    assert_eq!(node.dispatcher.lane(lane).turn(&waiting), Turn::Halted(a));
    node.backlog = vec![waiting];
    node.command(lane, Command::Resume { skip_head: true });
    assert_eq!((node.status(b), node.take_sent()), (None, vec![b]));
}

#[test]
fn a_node_that_is_held_starts_nothing_and_then_goes_on() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let out = node.publish(lane);
    node.take_sent();
    node.dispatcher.hold_starts(true);
    let ids = [node.publish(lane), node.publish(lane)];
    node.answer(lane, out, OK);
    node.pass(60_000);
    assert_eq!(node.take_sent(), []);
    node.dispatcher.hold_starts(false);
    node.step(Input::Wake);
    assert_eq!(node.drain(lane), ids);
    node.dispatcher.stop_starting();
    node.dispatcher.hold_starts(false);
    node.publish(lane);
    assert_eq!(node.take_sent(), [], "one that is to stop does not go on");
}

#[test]
fn a_paused_account_holds_every_destination_and_says_so() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let since = node.now.wall;
    let paused = Policy { account_paused: Some(since), ..one_at_a_time() };
    node.step(Input::Adopt { lane, policy: Arc::new(paused) });
    let id = node.publish(lane);
    node.pass(3_600_000);
    assert_eq!((node.take_sent(), node.held(lane)), (vec![], Some(HoldReason::Paused)));
    let machine = node.dispatcher.lane(lane);
    let explanation = machine.explain(node.now, &node.as_accepted(id));
    let sentence = explanation.gates[0].hold.unwrap().to_string();
    assert!(sentence.starts_with("the account is paused since "), "{sentence}");
    assert_eq!(machine.status(node.now).word(), "paused");
    let refills = node.refills;
    node.step(Input::Adopt { lane, policy: Arc::new(one_at_a_time()) });
    assert_eq!((node.take_sent(), node.refills), (vec![id], refills), "nothing is sorted or read anew");
}

#[test]
fn a_lane_tells_where_a_delivery_stands() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let (a, b) = (node.publish(lane), node.publish(lane));
    let later = in_an_hour(&node);
    node.publish_as(lane, later);
    let urgent = node.publish_as(lane, |event| event.priority = tidegate_core::delivery::Priority::CRITICAL);
    let machine = node.dispatcher.lane(lane);
    let before = [urgent, b].map(|id| machine.in_flight_before(&node.as_accepted(id)));
    assert_eq!(
        before,
        [0, 1],
        "what is in flight was before the one that is as urgent, not before the other"
    );
    assert_eq!(machine.next_probe(node.now.wall), Some(b), "the longest waiting, however urgent");
    assert_eq!(
        (machine.in_flight_count(), machine.is_in_flight(a), machine.is_in_flight(b)),
        (1, true, false)
    );
    assert_eq!(machine.turn(&node.as_accepted(b)), Turn::Its);
}

#[test]
fn a_lane_knows_of_a_fresh_delivery_that_it_cannot_make_it() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    node.answer(lane, id, Outcome::RateLimited { retry_after: Some(Millis::hours(1)) });
    let short = node.in_store(lane, |event| event.ttl = Some(Millis::minutes(10)));
    let long = node.in_store(lane, |event| event.ttl = Some(Millis::hours(2)));
    let machine = node.dispatcher.lane(lane);
    let doomed = [short, long].map(|delivery| machine.explain(node.now, &delivery).will_expire());
    assert_eq!(doomed, [true, false]);
}

/// A person who says "now" wants to see whether it works: also where everything waits for its next try.
#[test]
fn retry_now_sends_the_oldest_retry_where_nothing_else_is_due() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let first = node.publish(lane);
    let retry_after = Millis::hours(1);
    node.answer(lane, first, Outcome::Unavailable { retry_after });
    node.take_sent();
    node.step(Input::Command { lane, command: Command::RetryNow });
    assert_eq!(node.take_sent(), [first], "it does not wait for the hour that they asked for");
    node.answer(lane, first, Outcome::Success { status: 200 });
    let later = in_an_hour(&node);
    node.publish_as(lane, later);
    node.step(Input::Command { lane, command: Command::RetryNow });
    assert_eq!(node.take_sent(), [], "what its publisher has scheduled is no retry");
}
