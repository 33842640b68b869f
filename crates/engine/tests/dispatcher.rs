//! The dispatcher, step by step: one lane or a few, answers by hand. Backlogs that do not fit the memory, crashes and
//! whole worlds are the simulator's business.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "dispatcher/commits.rs"]
mod commits;
#[path = "dispatcher/node.rs"]
mod node;
#[path = "dispatcher/orders.rs"]
mod orders;

use std::sync::Arc;

use node::{FAILED, Node, OK, one_at_a_time, ordered, quiet_all_day_but_noon, quiet_but_noon_for};
use tidegate_core::breaker::BreakerPolicy;
use tidegate_core::delivery::{End, HoldReason, Late, Priority, Status};
use tidegate_core::gate::Hold;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::refill::Refill;
use tidegate_core::settle::Incoming;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::{Command, Input, LaneId};

#[test]
fn a_new_delivery_goes_straight_out() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    assert_eq!(node.take_sent(), [id]);
    node.answer(lane, id, OK);
    assert_eq!(node.settled.len(), 1);
    assert_eq!(node.settled[0].status, Status::Final(End::Delivered));
    assert_eq!(node.dispatcher.in_flight(), 0);
}

#[test]
fn what_a_refill_brought_before_its_commit_was_told_of_is_sent_once() {
    for (ordering, moment) in
        [Ordering::None, Ordering::Fifo].into_iter().flat_map(|one| (0..3).map(move |at| (one, at)))
    {
        let mut node = Node::new(10);
        node.late = Some(vec![]);
        let lane = node.lane(Policy { ordering, ..one_at_a_time() });
        let before = if moment == 2 { vec![node.publish(lane)] } else { vec![] };
        let delivery = node.in_store(lane, |_| {});
        let refill = Refill { deliveries: vec![delivery.clone()], ..Refill::default() };
        node.step(Input::Refilled { lane, refill });
        if moment == 1 {
            node.answer(lane, delivery.id, OK);
        }
        node.step(Input::Accepted { lane, delivery: delivery.clone() });
        for id in before.iter().chain((moment != 1).then_some(&delivery.id)) {
            node.answer(lane, *id, OK);
        }
        let expected: Vec<_> = before.into_iter().chain([delivery.id]).collect();
        assert_eq!(
            node.take_sent(),
            expected,
            "{ordering:?}, told of {}",
            ["in flight", "settled", "waiting"][moment]
        );
    }
}

#[test]
fn the_ramp_is_the_only_slow_start() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy { max_concurrency: Concurrency::new(6).unwrap(), ..Policy::default() });
    for _ in 0..16 {
        node.publish(lane);
    }
    // The first is out, some wait here, and the rest is in the store.
    node.backlog = node.accepted[1 + node.dispatcher.lane(lane).waiting()..].to_vec();
    let mut widths = vec![];
    for _ in 0..3 {
        let batch = node.take_sent();
        widths.push(batch.len());
        batch.into_iter().for_each(|id| node.answer(lane, id, OK));
    }
    assert_eq!(widths, [1, 2, 6], "doubles with each success, until the maximum");
    assert_eq!(node.dispatcher.lane(lane).state().in_flight, 6);
}

#[test]
fn the_most_urgent_goes_first_and_one_in_sixteen_is_the_oldest() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    node.command(lane, Command::Pause);
    let bulk: Vec<_> =
        (0..3).map(|_| node.publish_as(lane, |event| event.priority = Priority::BULK)).collect();
    let urgent: Vec<_> =
        (0..40).map(|_| node.publish_as(lane, |event| event.priority = Priority::CRITICAL)).collect();
    // A held lane has only the first of them in memory.
    let waiting = node.dispatcher.lane(lane).waiting();
    node.backlog = node.accepted[waiting..].to_vec();
    node.command(lane, Command::Resume { skip_head: false });
    let order = node.drain(lane);
    let places: Vec<_> = bulk.iter().map(|id| order.iter().position(|sent| sent == id).unwrap()).collect();
    assert_eq!(places, [15, 31, 42], "the sixteenth, the thirty-second, and when nothing urgent is left");
    let critical: Vec<_> = order.into_iter().filter(|id| !bulk.contains(id)).collect();
    assert_eq!(critical, urgent);
}

#[test]
fn in_fifo_the_head_blocks_until_it_is_final() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let (a, b) = (node.publish(lane), node.publish(lane));
    let c = node.publish_as(lane, |event| event.priority = Priority::CRITICAL);
    assert_eq!(node.take_sent(), [a]);
    node.answer(lane, a, FAILED);
    node.pass(9_999);
    assert_eq!(node.take_sent(), [], "its retry keeps the turn");
    node.pass(1);
    assert_eq!(node.take_sent(), [a]);
    node.answer(lane, a, FAILED);
    assert_eq!(node.settled.last().unwrap().status.word(), "dead_letter");
    assert_eq!(node.drain(lane), [b, c], "priority does not overtake");
}

#[test]
fn a_head_that_was_tried_keeps_its_turn_before_one_that_occurred_earlier() {
    let mut node = Node::new(10);
    let lane = node.lane(ordered(Ordering::Fifo));
    let a = node.publish(lane);
    node.answer(lane, a, Outcome::RateLimited { retry_after: Some(Millis::seconds(5)) });
    node.take_sent();
    let earlier = node.now.wall - Millis::minutes(1);
    let b = node.publish_as(lane, |event| event.occurred_at = Some(earlier));
    node.pass(5_000);
    assert_eq!(node.drain(lane), [a, b]);
}

#[test]
fn keys_keep_their_order_and_do_not_wait_for_each_other() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy { max_concurrency: Concurrency::new(10).unwrap(), ..ordered(Ordering::Key) });
    let warm = node.publish(lane);
    node.answer(lane, warm, OK);
    for _ in 0..4 {
        let id = node.publish(lane);
        node.answer(lane, id, OK);
    }
    node.take_sent();
    let mut keyed = |key: &str| node.publish_as(lane, |event| event.ordering_key = Some(key.into()));
    let (a1, a2, b1, b2) = (keyed("a"), keyed("a"), keyed("b"), keyed("b"));
    let free = node.publish(lane);
    assert_eq!(node.take_sent(), [a1, b1, free]);
    node.answer(lane, b1, OK);
    assert_eq!(node.take_sent(), [b2]);
    node.answer(lane, a1, FAILED);
    assert_eq!(node.take_sent(), []);
    node.pass(10_000);
    assert_eq!(node.take_sent(), [a1]);
    node.answer(lane, a1, OK);
    assert_eq!(node.take_sent(), [a2]);
}

#[test]
fn a_dead_head_halts_its_line_until_a_person_resumes() {
    let mut node = Node::new(10);
    let policy = Policy { on_exhausted: OnExhausted::Halt, ..ordered(Ordering::Key) };
    let lane = node.lane(policy);
    let mut keyed = |key: &str| node.publish_as(lane, |event| event.ordering_key = Some(key.into()));
    let a1 = keyed("a");
    node.take_sent();
    node.answer(lane, a1, Outcome::Gone);
    let mut keyed = |key: &str| node.publish_as(lane, |event| event.ordering_key = Some(key.into()));
    let (_a2, b1) = (keyed("a"), keyed("b"));
    assert_eq!(node.take_sent(), [b1], "only that key stands");
    node.answer(lane, b1, OK);
    assert_eq!(node.take_sent(), []);
    assert_eq!(node.dispatcher.lane(lane).halted().len(), 1);
    node.command(lane, Command::Resume { skip_head: false });
    assert_eq!(node.dispatcher.lane(lane).halted().len(), 0);
}

#[test]
fn a_destination_that_begins_to_keep_an_order_lets_what_is_out_come_back_first() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy::default());
    for _ in 0..3 {
        let id = node.publish(lane);
        node.answer(lane, id, OK);
    }
    node.sent.clear();
    let out: Vec<_> = (0..4).map(|_| node.publish(lane)).collect();
    assert_eq!(node.take_sent(), out);
    node.step(Input::Adopt { lane, policy: Arc::new(ordered(Ordering::Fifo)) });
    let (next, last) = (node.publish(lane), node.publish(lane));
    for id in out.into_iter().rev() {
        assert_eq!(node.take_sent(), []);
        node.answer(lane, id, OK);
    }
    assert_eq!(node.take_sent(), [next]);
    node.answer(lane, next, OK);
    assert_eq!(node.take_sent(), [last]);
}

#[test]
fn a_breaker_that_is_switched_off_holds_nothing_more() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy::default());
    for _ in 0..5 {
        let id = node.publish(lane);
        node.answer(lane, id, FAILED);
    }
    node.sent.clear();
    let id = node.publish(lane);
    assert_eq!((node.take_sent(), node.held(lane)), (vec![], Some(HoldReason::CircuitOpen)));
    let off = BreakerPolicy { enabled: false, ..BreakerPolicy::default() };
    node.step(Input::Adopt { lane, policy: Arc::new(Policy { breaker: off, ..Policy::default() }) });
    assert_eq!(node.take_sent(), [id]);
}

#[test]
fn a_disabled_destination_is_told_of_once() {
    let mut node = Node::new(100);
    let lane = node.lane(Policy::default());
    for _ in 0..4 {
        let id = node.publish(lane);
        node.answer(lane, id, OK);
    }
    node.sent.clear();
    let out: Vec<_> = (0..5).map(|_| node.publish(lane)).collect();
    out.into_iter().for_each(|id| node.answer(lane, id, Outcome::Gone));
    assert_eq!(node.notices, 1);
    node.publish(lane);
    assert_eq!(node.held(lane), Some(HoldReason::Disabled));
}

#[test]
fn a_lane_has_one_timer_however_often_it_is_woken() {
    let mut node = Node::new(100);
    let quota = Quota::new(60, Per::Minute, Some(1)).unwrap();
    let lane = node
        .lane(Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }), ..Policy::default() });
    let at = node.now.wall + Millis::days(60);
    node.publish_as(lane, |event| event.deliver_at = Some(at));
    for _ in 0..300 {
        node.publish(lane);
        node.publish(lane);
        node.drain(lane);
        node.pass(1_000);
        node.drain(lane);
        node.pass(1_000);
    }
    assert!(format!("{:?}", node.dispatcher).matches("LaneId(0)").count() < 5, "one lane, one timer");
}

#[test]
fn a_paused_destination_holds_its_deliveries_and_resuming_releases_them() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    node.command(lane, Command::Pause);
    let ids = [node.publish(lane), node.publish(lane)];
    node.pass(3_600_000);
    assert_eq!((node.take_sent(), node.held(lane)), (vec![], Some(HoldReason::Paused)));
    node.command(lane, Command::Resume { skip_head: false });
    assert_eq!(node.drain(lane), ids);
    assert!(node.holds.contains(&(HoldReason::Paused, Millis::hours(1))), "{:?}", node.holds);
}

#[test]
fn a_held_lane_sleeps_until_its_gate_opens() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let id = node.publish(lane);
    node.answer(lane, id, Outcome::RateLimited { retry_after: Some(Millis::seconds(77)) });
    node.take_sent();
    for _ in 0..1_000 {
        node.publish(lane);
    }
    assert_eq!(
        node.dispatcher.next_wake(),
        Some(node.now.wall + Millis::seconds(77)),
        "one timer for a thousand"
    );
    assert_eq!(node.take_sent(), []);
    node.pass(77_000);
    assert_eq!(node.take_sent().len(), 1, "one probe goes first");
    assert!(node.dispatcher.lane(lane).waiting() <= 8, "a held lane keeps a small window, not the backlog");
}

#[test]
fn the_next_probe_is_another_delivery() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let ids: Vec<_> = (0..3).map(|_| node.publish(lane)).collect();
    let throttled = Outcome::RateLimited { retry_after: Some(Millis::seconds(1)) };
    let mut probes = vec![];
    for _ in 0..6 {
        let sent = node.take_sent();
        assert_eq!(sent.len(), 1);
        probes.push(sent[0]);
        node.answer(lane, sent[0], throttled);
        node.pass(1_000);
    }
    assert_eq!(probes[..2], [ids[0], ids[0]], "the first of these was no probe");
    assert!(probes[1..].windows(2).all(|pair| pair[0] != pair[1]), "{probes:?}");
}

#[test]
fn what_may_pass_the_night_is_found_behind_what_may_not() {
    let mut node = Node::new(10);
    let lane = node.lane(quiet_all_day_but_noon("payment.*"));
    for _ in 0..2_000 {
        node.publish(lane);
    }
    assert_eq!((node.take_sent(), node.held(lane)), (vec![], Some(HoldReason::QuietHours)));
    let urgent =
        node.publish_as(lane, |event| event.event_type = EventType::parse("payment.failed").unwrap());
    assert_eq!(node.take_sent(), [urgent]);
}

/// What is shown of a lane: the word for it, and of each hold the word and since when, in milliseconds from now.
fn shown(node: &Node, lane: LaneId) -> (&'static str, Vec<(&'static str, Option<i64>)>) {
    let machine = node.dispatcher.lane(lane);
    let ago = |hold: &Hold| machine.held_since(node.now, hold).map(|since| (since - node.now.wall).get());
    let holds = machine.holds(node.now);
    let holds = holds.iter().map(|hold| (hold.reason().word(), ago(hold))).collect();
    (machine.status(node.now).word(), holds)
}

#[test]
fn a_window_for_some_types_holds_the_lane_while_something_waits_for_it() {
    let mut node = Node::new(10);
    let lane = node.lane(quiet_but_noon_for("news.*"));
    let news = |event: &mut Incoming| event.event_type = EventType::parse("news.daily").unwrap();
    assert_eq!(shown(&node, lane), ("active", vec![]));
    let daily = node.publish_as(lane, news);
    node.pass(1_000);
    assert_eq!(shown(&node, lane), ("quiet_hours", vec![("quiet_hours", Some(-1_000))]));
    let sentence = node.dispatcher.lane(lane).holds(node.now)[0].to_string();
    assert!(sentence.starts_with("quiet hours for some event types; they end at "), "{sentence}");
    // Other types go, and what they meet is not what the others wait for: both are shown, in the order of the words.
    let others: Vec<_> = (0..2).map(|_| node.publish(lane)).collect();
    assert_eq!((node.take_sent(), node.held(lane)), (others[..1].to_vec(), Some(HoldReason::AtCapacity)));
    let (status, holds) = shown(&node, lane);
    assert_eq!((status, holds[0].0, holds[1]), ("quiet_hours", "quiet_hours", ("at_capacity", Some(0))));
    node.answer(lane, others[0], OK);
    node.step(Input::Adopt { lane, policy: Arc::default() });
    assert_eq!(node.drain(lane), [others[1], daily]);
    assert_eq!(shown(&node, lane), ("active", vec![]));
}

#[test]
fn a_lane_without_slots_or_tokens_says_since_when_though_nothing_waits() {
    let mut node = Node::new(10);
    let quota = Quota::new(1, Per::Hour, Some(1)).unwrap();
    let limit = RateLimit { quota, mode: RateMode::Fixed };
    let lane = node.lane(Policy { rate_limit: Some(limit), ..one_at_a_time() });
    node.pass(5_000);
    let id = node.publish(lane);
    node.pass(700);
    let both = vec![("at_capacity", Some(-700)), ("rate_limited", Some(-700))];
    assert_eq!(shown(&node, lane), ("rate_limited", both));
    node.answer(lane, id, OK);
    node.pass(300);
    assert_eq!(shown(&node, lane), ("rate_limited", vec![("rate_limited", Some(-1_000))]));
    // What has work waiting is noted, and that outlives a restart.
    node.publish(lane);
    node.pass(400);
    assert_eq!(shown(&node, lane), ("rate_limited", vec![("rate_limited", Some(-400))]));
}

#[test]
fn an_edited_window_releases_at_once() {
    let mut node = Node::new(10);
    let lane = node.lane(quiet_all_day_but_noon("none"));
    let id = node.publish(lane);
    assert_eq!(node.take_sent(), []);
    node.step(Input::Adopt { lane, policy: Arc::default() });
    assert_eq!(node.take_sent(), [id]);
}

#[test]
fn a_shaped_lane_sends_its_burst_and_then_one_per_token() {
    let mut node = Node::new(100);
    let quota = Quota::new(60, Per::Minute, Some(3)).unwrap();
    let lane = node
        .lane(Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }), ..Policy::default() });
    for _ in 0..9 {
        node.publish(lane);
    }
    assert_eq!(node.drain(lane).len(), 3);
    assert_eq!(node.held(lane), Some(HoldReason::RateLimited));
    for _ in 0..6 {
        node.pass(999);
        assert_eq!(node.drain(lane).len(), 0);
        node.pass(1);
        assert_eq!(node.drain(lane).len(), 1);
    }
}

#[test]
fn a_waiting_delivery_ends_when_its_time_is_up() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    node.command(lane, Command::Pause);
    let id = node.publish_as(lane, |event| event.ttl = Some(Millis::seconds(60)));
    let wake = node.dispatcher.next_wake().unwrap();
    assert!(wake <= node.now.wall + Millis::seconds(60));
    node.pass(60_000);
    let ended = node.settled.iter().find(|delivery| delivery.id == id).unwrap();
    assert_eq!(ended.status, Status::Final(End::Expired(Late::Behind(HoldReason::Paused))));
}

#[test]
fn what_is_withdrawn_is_not_sent_and_what_is_under_way_may_still_succeed() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let (a, b, c) = (node.publish(lane), node.publish(lane), node.publish(lane));
    node.withdraw(lane, b);
    assert_eq!(node.settled.last().unwrap().status.word(), "cancelled");
    node.withdraw(lane, a);
    node.withdraw(lane, c);
    node.answer(lane, a, OK);
    assert_eq!(
        node.settled.last().unwrap().status,
        Status::Final(End::Delivered),
        "too late to call it back"
    );
    assert_eq!(node.take_sent(), [a]);
}

#[test]
fn a_clock_that_is_set_back_does_not_freeze_a_lane() {
    let mut node = Node::new(10);
    let quota = Quota::new(60, Per::Minute, Some(1)).unwrap();
    let lane = node
        .lane(Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }), ..Policy::default() });
    for _ in 0..3 {
        node.publish(lane);
    }
    node.drain(lane);
    node.now.wall = node.now.wall - Millis::hours(2);
    node.step(Input::Wake);
    node.pass(1_000);
    assert_eq!(node.drain(lane).len(), 1, "the bucket lives on the clock that cannot be set");
}

#[test]
fn what_was_due_stays_due_when_the_clock_is_set_back() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let out = node.publish(lane);
    let at = node.now.wall + Millis::seconds(1);
    let due = node.publish_as(lane, |event| event.deliver_at = Some(at));
    node.pass(1_000);
    assert_eq!(node.take_sent(), [out]);
    node.now.wall = node.now.wall - Millis::hours(1);
    node.step(Input::Wake);
    node.answer(lane, out, OK);
    assert_eq!(node.take_sent(), [due]);
}

#[test]
fn a_busy_destination_does_not_make_the_others_wait() {
    let mut node = Node::new(10);
    let wide = || Policy { max_concurrency: Concurrency::new(100).unwrap(), ..Policy::default() };
    let busy = node.lane(wide());
    let others: Vec<_> = (0..19).map(|_| node.lane(wide())).collect();
    for lane in std::iter::once(busy).chain(others.iter().copied()) {
        let id = node.publish(lane);
        node.sent.clear();
        node.answer(lane, id, OK);
    }
    node.sent.clear();
    for _ in 0..180 {
        node.publish(busy);
    }
    for lane in &others {
        node.publish(*lane);
    }
    let mut rounds = 0;
    let mut left = 19;
    while left > 0 {
        rounds += 1;
        for (lane, id) in node.sent.drain(..).collect::<Vec<_>>() {
            left -= usize::from(lane != busy);
            node.answer(lane, id, OK);
        }
    }
    assert!(rounds <= 4, "19 lanes on 10 slots, shared with one that always has work: {rounds} rounds");
}

#[test]
fn failing_destinations_hold_at_most_a_quarter_of_the_node() {
    let mut node = Node::new(40);
    let wide = || Policy { max_concurrency: Concurrency::new(100).unwrap(), ..Policy::default() };
    let lanes: Vec<_> = (0..40).map(|_| node.lane(wide())).collect();
    for lane in &lanes {
        let id = node.publish(*lane);
        node.answer(*lane, id, FAILED);
        for _ in 0..5 {
            node.publish(*lane);
        }
    }
    assert_eq!(node.dispatcher.in_flight_of_suspects(), 8, "a part of the quarter is left to new ones");
    let [works, new, hangs, waits] = [0; 4].map(|_| node.lane(wide()));
    node.sent.clear();
    let id = node.publish(new);
    assert_eq!(node.take_sent(), [id]);
    node.answer(new, id, OK);
    for lane in [hangs, hangs, waits] {
        node.publish(lane);
    }
    let id = node.publish(works);
    assert_eq!(
        (node.dispatcher.in_flight(), node.take_sent().contains(&id)),
        (10, false),
        "a quarter of the node"
    );
    node.pass(1_000);
    assert_eq!(
        node.dispatcher.in_flight_of_suspects(),
        10,
        "new ones that hang are known now, and it stays a quarter"
    );
    for _ in 0..30 {
        node.publish(new);
    }
    assert!(node.dispatcher.in_flight() > 10, "one that works has all the rest");
}

#[test]
fn a_destination_that_worked_and_now_hangs_does_not_take_the_node() {
    let mut node = Node::new(100);
    let wide = || Policy { max_concurrency: Concurrency::new(500).unwrap(), ..Policy::default() };
    let (hanging, healthy) = (node.lane(wide()), node.lane(wide()));
    for lane in [hanging, healthy] {
        for _ in 0..12 {
            let id = node.publish(lane);
            node.answer(lane, id, OK);
        }
    }
    node.sent.clear();
    for _ in 0..40 {
        node.publish(hanging);
    }
    assert_eq!(node.take_sent().len(), 40, "it may have many, as far as anyone knows");
    node.pass(1_000);
    for _ in 0..40 {
        node.publish(hanging);
    }
    assert_eq!(node.take_sent(), [], "nothing has ended there for a second");
    let id = node.publish(healthy);
    assert_eq!(node.take_sent(), [id]);
}

#[test]
fn nothing_that_waits_is_forgotten_when_it_waits_for_its_own_time() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    let later = |at: Timestamp| move |event: &mut Incoming| event.deliver_at = Some(at);
    let at = node.now.wall + Millis::days(3);
    let id = node.publish_as(lane, later(at));
    node.pass(86_400_000 * 3 - 1);
    assert_eq!(node.take_sent(), []);
    node.pass(1);
    assert_eq!(node.take_sent(), [id]);
}

/// Goal: whoever asks why something waits is told of the first gate that is closed then, also after another one has opened.
#[test]
fn the_hold_log_names_each_gate_for_as_long_as_it_is_the_first() {
    let mut node = Node::new(10);
    let lane = node.lane(Policy::default());
    for _ in 0..3 {
        let id = node.publish(lane);
        node.answer(lane, id, OK);
    }
    let (a, b) = (node.publish(lane), node.publish(lane));
    node.answer(lane, a, Outcome::Unavailable { retry_after: Millis::seconds(9) });
    node.answer(lane, b, Outcome::RateLimited { retry_after: Some(Millis::seconds(4)) });
    node.holds.clear();
    node.take_sent();
    while node.take_sent().is_empty() {
        let wake = node.dispatcher.next_wake().expect("it wakes by itself");
        node.pass((wake - node.now.wall).get().max(1));
    }
    let told = [(HoldReason::Throttled, Millis::seconds(4)), (HoldReason::Unavailable, Millis::seconds(5))];
    assert_eq!(node.holds, told);
}

#[test]
fn one_of_sixteen_starts_is_the_longest_waiting_whatever_its_publisher_says() {
    let mut node = Node::new(10);
    let lane = node.lane(one_at_a_time());
    let mut out = node.publish(lane);
    let bulk = node.publish_as(lane, |event| event.priority = Priority::BULK);
    let long_ago = node.now.wall - Millis::hours(1);
    for _ in 0..40 {
        node.publish_as(lane, |event| {
            (event.priority, event.occurred_at) = (Priority::CRITICAL, Some(long_ago));
        });
    }
    node.take_sent();
    let mut starts = 0;
    while out != bulk {
        node.answer(lane, out, OK);
        out = node.take_sent()[0];
        starts += 1;
        assert!(starts <= 16, "the bulk one starves");
    }
}

#[test]
fn what_expired_while_no_server_ran_says_so() {
    let mut node = Node::new(10);
    let before = node.lane(Policy::default());
    let [gone, late] = [1_000, 10_100].map(|ttl| {
        let expires_at = node.now.wall + Millis::new(ttl);
        node.in_store(before, |event| event.expires_at = Some(expires_at))
    });
    node.pass(10_000);
    let after = node.lane(Policy::default());
    for delivery in [gone.clone(), late.clone()] {
        node.step(Input::Overdue { lane: after, delivery: Box::new(delivery) });
    }
    let ended = Some(Status::Final(End::Expired(Late::NoServer)));
    assert_eq!(
        (node.status(gone.id), node.status(late.id)),
        (ended, ended),
        "too little time was left to the second"
    );
    assert_eq!(node.take_sent(), []);
}
