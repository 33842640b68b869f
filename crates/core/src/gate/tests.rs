use proptest::prelude::*;

use super::*;
use crate::breaker::BreakerPolicy;
use crate::draw::Draw;
use crate::health::DisabledCause;
use crate::id::DeliveryId;
use crate::lane::{HaltedLine, LastStop, Report, Unavailable};
use crate::order::{Line, Ordering};
use crate::outcome::{NetworkFault, Outcome};
use crate::pattern::EventType;
use crate::policy::Concurrency;
use crate::quiet::{QuietHours, Window, WindowSpec};
use crate::rate::{Per, Quota, RateLimit, RateMode};
use crate::settle::{Incoming, Terms, accept, settle};
use crate::time::Mono;

/// 2026-05-01T05:30:00Z: half past midnight in Chicago.
const NIGHT: i64 = 1_777_613_400_000;

fn now(ms: i64) -> Now {
    Now::at(NIGHT + ms)
}
fn at(ms: i64) -> Timestamp {
    now(ms).wall
}

fn delivery(id: u128) -> Delivery {
    accept(at(0), incoming(id), &Policy::default(), &Terms::default())
}

fn incoming(id: u128) -> Incoming {
    Incoming::new(
        DeliveryId::from_bits(id),
        u64::try_from(id).unwrap(),
        EventType::parse("order.created").unwrap(),
    )
}

fn night_window() -> QuietHours {
    let spec = WindowSpec {
        timezone: "America/Chicago".into(),
        quiet_start: "00:00".into(),
        quiet_end: "06:00".into(),
        days: vec![],
        applies_to: vec![],
        bypass_event_types: vec!["payment.*".into()],
    };
    QuietHours::new(vec![Window::parse(spec).unwrap()]).unwrap()
}

/// One destination and one delivery; tests bend them and ask.
struct Case {
    delivery: Delivery,
    policy: Policy,
    lane: LaneState,
    turn: Turn,
}

impl Case {
    fn new() -> Self {
        let policy = Policy::default();
        let lane = LaneState::new(&policy, now(0));
        Self { delivery: delivery(1), policy, lane, turn: Turn::Its }
    }
    fn ask(&self, ms: i64) -> Decision {
        decide(&self.question(ms))
    }
    fn question(&self, ms: i64) -> Question<'_> {
        let quiet = self.policy.quiet.mask_for(&self.delivery.event_type);
        Question {
            now: now(ms),
            delivery: &self.delivery,
            turn: self.turn,
            quiet,
            policy: &self.policy,
            lane: &self.lane,
        }
    }
    fn check_waits(&self, ms: i64, reason: HoldReason, until: Option<i64>) {
        match self.ask(ms) {
            Decision::Wait(wait) => assert_eq!((wait.hold.reason(), wait.until), (reason, until.map(at))),
            other => panic!("waits for {reason}, not {other:?}"),
        }
    }
    fn goes(&self, ms: i64) -> Go {
        match self.ask(ms) {
            Decision::Go(go) => go,
            other => panic!("goes, not {other:?}"),
        }
    }
    /// Starts an attempt of delivery `id` at `ms` and ends it `took` later.
    fn attempt(&mut self, id: u128, ms: i64, took: i64, outcome: Outcome) {
        let go = Go { timeout: Millis::seconds(10), cut_short: false, probe: self.question(ms).go().probe };
        let id = DeliveryId::from_bits(id);
        let attempt = self.lane.start(now(ms), id, go);
        let report = Report { outcome, elapsed: Millis::new(took), rate_hint: None };
        self.lane.finish(now(ms + took), &self.policy, id, &attempt, &report);
    }
}

#[test]
fn nothing_in_the_way_means_go() {
    let go = Case::new().goes(0);
    assert_eq!(go, Go { timeout: Millis::seconds(10), cut_short: false, probe: None });
}

#[test]
fn each_gate_holds_for_its_own_reason() {
    let mut case = Case::new();
    case.lane.standing.paused = Some(at(0));
    case.check_waits(5, HoldReason::Paused, None);
    case.lane.standing.disabled = Some((at(0), DisabledCause::Gone));
    case.check_waits(5, HoldReason::Disabled, None);
    case.policy.account_paused = Some(at(0));
    case.check_waits(5, HoldReason::Disabled, None);
    let all = |case: &Case| -> Vec<_> {
        holds(now(5), &case.policy, &case.lane).iter().map(|hold| hold.reason().word()).collect()
    };
    assert_eq!(all(&case), ["disabled", "paused", "paused"], "by its owner, by the account's, by itself");
    case.policy.account_paused = None;
    case.lane.standing.disabled = None;
    case.check_waits(5, HoldReason::Paused, None);
    case.lane.standing.paused = None;
    assert!(all(&case).is_empty());

    let mut case = Case::new();
    case.delivery.status = Status::RetryScheduled { at: at(900), reason: OwnTime::Scheduled };
    case.check_waits(5, HoldReason::Scheduled, Some(900));
    case.delivery.status = Status::RetryScheduled { at: at(900), reason: OwnTime::RetryBackoff };
    case.check_waits(5, HoldReason::RetryBackoff, Some(900));
    case.goes(900);

    let mut case = Case::new();
    for id in 0..5 {
        case.attempt(id, 0, 10, Outcome::NetworkError(NetworkFault::Connect));
    }
    case.check_waits(10, HoldReason::CircuitOpen, Some(30_010));
    assert_eq!(case.goes(30_010).probe, Some(Probe::Breaker));

    let mut case = Case::new();
    case.attempt(2, 0, 10, Outcome::RateLimited { retry_after: None });
    case.check_waits(10, HoldReason::Throttled, Some(60_010));
    assert_eq!(case.goes(60_010).probe, Some(Probe::Throttle));

    let mut case = Case::new();
    case.attempt(2, 0, 10, Outcome::Unavailable { retry_after: Millis::seconds(7) });
    case.check_waits(10, HoldReason::Unavailable, Some(7_010));

    let mut case = Case::new();
    case.policy.quiet = night_window();
    case.check_waits(0, HoldReason::QuietHours, Some(5 * 3_600_000 + 1_800_000));
    case.delivery.event_type = EventType::parse("payment.failed").unwrap();
    case.goes(0);

    let mut case = Case::new();
    case.turn = Turn::Behind(DeliveryId::from_bits(7));
    case.check_waits(0, HoldReason::OrderBlocked, None);

    let mut case = Case::new();
    case.lane.in_flight = 1;
    case.check_waits(0, HoldReason::AtCapacity, None);

    let mut case = Case::new();
    let quota = Quota::new(60, Per::Minute, Some(1)).unwrap();
    case.policy.rate_limit = Some(RateLimit { quota, mode: RateMode::Fixed });
    case.lane = LaneState::new(&case.policy, now(0));
    case.attempt(2, 0, 10, Outcome::Success { status: 200 });
    case.check_waits(10, HoldReason::RateLimited, Some(1_000));
}

#[test]
fn the_first_closed_gate_names_the_hold_and_the_last_to_open_its_end() {
    let mut case = Case::new();
    case.attempt(2, 0, 10, Outcome::RateLimited { retry_after: Some(Millis::hours(1)) });
    case.policy.quiet = night_window();
    case.check_waits(10, HoldReason::Throttled, Some(5 * 3_600_000 + 1_800_000));
    case.lane.in_flight = 9;
    case.check_waits(10, HoldReason::Throttled, None);
}

#[test]
fn a_hold_that_ends_in_the_night_lasts_until_morning() {
    let mut case = Case::new();
    case.policy.quiet = night_window();
    let evening = -3_600_000; // 23:30 in Chicago
    case.lane.unavailable = Some(Unavailable { since: at(evening), until: at(0) });
    case.check_waits(evening, HoldReason::Unavailable, Some(5 * 3_600_000 + 1_800_000));
}

#[test]
fn a_stale_delivery_ends_with_what_made_it_late() {
    let mut case = Case::new();
    case.delivery.expires_at = Some(at(60_000));
    assert_eq!(case.goes(50_001), Go { timeout: Millis::new(9_999), cut_short: true, probe: None });
    assert_eq!(case.ask(59_751), Decision::Finish(End::Expired(Late::InQueue)), "too little time is no time");
    assert_eq!(case.ask(60_000), Decision::Finish(End::Expired(Late::InQueue)));
    case.lane.standing.paused = Some(at(0));
    assert_eq!(case.ask(60_000), Decision::Finish(End::Expired(Late::Behind(HoldReason::Paused))));
}

#[test]
fn behind_a_hold_it_expires_when_its_time_comes_and_not_before() {
    let mut case = Case::new();
    case.delivery.expires_at = Some(at(60_000));
    case.attempt(2, 0, 10, Outcome::RateLimited { retry_after: Some(Millis::hours(1)) });
    match case.ask(20) {
        Decision::Wait(wait) => assert!(wait.will_expire),
        other => panic!("a person may lift the hold: {other:?}"),
    }
    assert_eq!(case.ask(60_000), Decision::Finish(End::Expired(Late::Behind(HoldReason::Throttled))));
    case.delivery.status = Status::RetryScheduled { at: at(60_000), reason: OwnTime::RetryBackoff };
    assert_eq!(
        case.ask(20),
        Decision::Finish(End::Expired(Late::Behind(HoldReason::RetryBackoff))),
        "its own time is sure"
    );
}

/// What the API warns of when an event is published: asked of the lane for a delivery that is not in it yet.
#[test]
fn a_delivery_that_cannot_make_it_is_known_before_it_is_queued() {
    const HOUR: i64 = 3_600_000;
    const MORNING: i64 = 5 * HOUR + 1_800_000;
    /// Its name, the case, when it is asked, `deliver_at`, `expires_at`, and whether it will expire.
    type Row<'a> = (&'a str, &'a dyn Fn(&mut Case), i64, Option<i64>, i64, bool);
    let quiet = |case: &mut Case| case.policy.quiet = night_window();
    let throttled = |case: &mut Case| {
        case.attempt(2, 0, 10, Outcome::RateLimited { retry_after: Some(Millis::hours(1)) });
    };
    let nothing = |_: &mut Case| {};
    let paused = |case: &mut Case| case.lane.standing.paused = Some(at(0));
    let paused_by_night = |case: &mut Case| {
        quiet(case);
        paused(case);
    };
    let throttled_by_night = |case: &mut Case| {
        throttled(case);
        quiet(case);
    };
    let full_by_night = |case: &mut Case| {
        quiet(case);
        case.lane.in_flight = 9;
    };
    let unavailable_by_night = |case: &mut Case| {
        quiet(case);
        case.lane.unavailable = Some(Unavailable { since: at(0), until: at(HOUR) });
    };
    let cases: [Row<'_>; 15] = [
        ("nothing in the way", &nothing, 20, None, 1_000, false),
        ("throttled for an hour", &throttled, 20, None, HOUR, true),
        ("throttled, but long-lived", &throttled, 20, None, HOUR + 1_000, false),
        ("night", &quiet, 20, None, MORNING, true),
        ("night, lives until day", &quiet, 20, None, MORNING + 1_000, false),
        ("throttled, then night", &throttled_by_night, 20, None, 2 * HOUR, true),
        ("throttled, then night, lives until day", &throttled_by_night, 20, None, MORNING + 1_000, false),
        ("scheduled in time", &nothing, 20, Some(HOUR), HOUR + 1_000, false),
        ("scheduled into the throttle", &throttled, 20, Some(HOUR / 2), HOUR, true),
        ("scheduled for the night", &quiet, -2 * HOUR, Some(HOUR), 2 * HOUR, true),
        ("scheduled for the morning", &quiet, -2 * HOUR, Some(MORNING), MORNING + 1_000, false),
        ("paused: a person may lift it, but has not", &paused, 20, None, 60_000, true),
        ("paused, and night besides", &paused_by_night, 20, None, MORNING, true),
        ("every slot taken, and night besides", &full_by_night, 20, None, MORNING, true),
        ("unavailable into the night", &unavailable_by_night, -HOUR, None, 2 * HOUR, true),
    ];
    for (name, bend, asked, deliver_at, expires_at, expected) in cases {
        let mut case = Case::new();
        bend(&mut case);
        let incoming =
            Incoming { expires_at: Some(at(expires_at)), deliver_at: deliver_at.map(at), ..incoming(9) };
        case.delivery = accept(at(asked), incoming, &case.policy, &Terms::default());
        assert_eq!(explain(&case.question(asked)).will_expire(), expected, "{name}");
    }
}

#[test]
fn seven_days_are_enough() {
    let case = Case::new();
    let week = 7 * 86_400_000;
    case.goes(week - 1);
    assert_eq!(case.ask(week), Decision::Finish(End::DeadLetter(Dead::TooOld(None))));
}

#[test]
fn what_is_final_or_under_way_is_left_alone() {
    let mut case = Case::new();
    for status in [Status::Delivering, Status::Final(End::Delivered)] {
        case.delivery.status = status;
        assert_eq!(case.ask(0), Decision::Nothing);
    }
}

#[test]
fn the_breakers_probe_gets_the_longest_timeout() {
    let mut case = Case::new();
    for id in 0..5 {
        case.attempt(id, 0, 10, Outcome::Timeout);
    }
    assert_eq!(case.goes(31_000).timeout, Millis::seconds(30));
}

#[test]
fn a_limited_lane_waits_for_the_commit_of_its_starts() {
    let mut case = Case::new();
    case.policy.max_concurrency = Concurrency::new(2).unwrap();
    case.policy.rate_limit =
        Some(RateLimit { quota: Quota::new(600, Per::Minute, None).unwrap(), mode: RateMode::Fixed });
    case.lane = LaneState::new(&case.policy, now(0));
    case.attempt(2, 0, 1, Outcome::Success { status: 200 });
    case.attempt(3, 1, 1, Outcome::Success { status: 200 });
    case.check_waits(2, HoldReason::AtCapacity, None);
    case.lane.unsaved_starts = 1;
    case.goes(2);
}

#[test]
fn a_destination_shows_its_first_hold_and_lists_all() {
    let mut case = Case::new();
    let word = |case: &Case, ms| status(&holds(now(ms), &case.policy, &case.lane)).word();
    assert_eq!(word(&case, 0), "active");
    let quota = Quota::new(60, Per::Minute, Some(1)).unwrap();
    case.policy.rate_limit = Some(RateLimit { quota, mode: RateMode::Fixed });
    case.lane = LaneState::new(&case.policy, now(0));
    case.attempt(2, 0, 10, Outcome::Success { status: 200 });
    case.lane.in_flight = 9;
    assert_eq!(word(&case, 10), "rate_limited", "a spent rate says more than taken slots");
    case.policy.quiet = night_window();
    assert_eq!(word(&case, 10), "quiet_hours");
    case.lane.standing.paused = Some(at(0));
    assert_eq!(word(&case, 10), "paused");
    let all: Vec<_> =
        holds(now(10), &case.policy, &case.lane).iter().map(|hold| hold.reason().word()).collect();
    assert_eq!(all, ["paused", "quiet_hours", "at_capacity", "rate_limited"]);
}

#[test]
fn a_whole_line_that_stands_holds_its_destination() {
    let mut case = Case::new();
    case.policy.ordering = Ordering::Fifo;
    case.lane.halted.push(HaltedLine { line: Line::Whole, head: case.delivery.id, since: None });
    let found = holds(now(0), &case.policy, &case.lane);
    assert_eq!(found, [Hold::OrderBlocked { head: case.delivery.id, halted: true }]);
    let word = |case: &Case| status(&holds(now(0), &case.policy, &case.lane)).word();
    assert_eq!(word(&case), "paused", "a person has to resume it");
    case.lane.unavailable = Some(Unavailable { since: at(-1), until: at(1) });
    assert_eq!(word(&case), "paused", "what a person must do is named before what time does");
    case.lane.unavailable = None;
    case.policy.ordering = Ordering::Key;
    assert!(holds(now(0), &case.policy, &case.lane).is_empty());
}

#[test]
fn a_limit_that_was_taken_away_and_set_again_gives_no_tokens() {
    let quota = Quota::new(1, Per::Minute, Some(3)).unwrap();
    let limited =
        Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }), ..Policy::default() };
    let free = Policy::default();
    let mut case = Case::new();
    case.policy = limited.clone();
    case.lane = LaneState::new(&limited, now(0));
    for n in 0..3 {
        case.attempt(n, 0, 10, Outcome::Success { status: 200 });
    }
    assert_eq!(case.lane.tokens(now(20).mono), Some(0));
    case.lane.adopt(&limited, &free, now(20));
    assert_eq!((case.lane.tokens(now(20).mono), case.lane.token_wait(&free, now(20).mono)), (None, None));
    case.lane.adopt(&free, &limited, now(30));
    assert_eq!(case.lane.tokens(now(30).mono), Some(0));
}

#[test]
fn the_estimate_counts_the_tokens_and_turns_of_those_before() {
    let mut case = Case::new();
    let exchange = Millis::new(200);
    let when = |case: &Case, ahead| {
        (estimate(now(0), at(0), ahead, exchange, &case.policy, &case.lane) - at(0)).get()
    };
    assert_eq!((when(&case, 0), when(&case, 4), when(&case, 50)), (0, 0, 2_000), "ten turns of five slots");
    case.lane.in_flight = 5;
    assert_eq!((when(&case, 0), when(&case, 4), when(&case, 5)), (200, 200, 400), "after those in flight");
    case.lane.in_flight = 0;
    let quota = Quota::new(100, Per::Minute, Some(250)).unwrap();
    case.policy.rate_limit = Some(RateLimit { quota, mode: RateMode::Fixed });
    case.lane = LaneState::new(&case.policy, now(0));
    assert_eq!(when(&case, 9_999), 97 * 60_000 + 30_000, "the last of ten thousand");
    let night = Millis::minutes(330);
    let later = estimate(now(0), at(0) + night, 9_999, exchange, &case.policy, &case.lane);
    assert_eq!(
        later - at(0) - night,
        Millis::new(when(&case, 9_999)),
        "a night saves up no more than the burst"
    );
}

#[test]
fn a_restored_lane_is_one_of_the_policy_of_now() {
    let limit = |max| {
        Some(RateLimit { quota: Quota::new(max, Per::Minute, Some(1)).unwrap(), mode: RateMode::Fixed })
    };
    let (old, new) = (Policy::default(), Policy { rate_limit: limit(60), ..Policy::default() });
    let thirty = Quota::new(60, Per::Minute, Some(30)).unwrap();
    let burst = Some(RateLimit { quota: thirty, mode: RateMode::Fixed });
    let restored = LaneState::new(&old, now(0)).save(&old, now(0)).restore(&new, now(0), LastStop::Clean);
    assert_eq!(restored.tokens(now(0).mono), Some(1), "a limit set meanwhile holds");
    let restored = LaneState::new(&new, now(0)).save(&new, now(0)).restore(&old, now(0), LastStop::Clean);
    assert_eq!(restored.tokens(now(0).mono), None, "a limit taken away does not");
    let few = Policy { rate_limit: burst, ..Policy::default() };
    let many = Policy { max_concurrency: Concurrency::new(20).unwrap(), ..few.clone() };
    let restored = LaneState::new(&many, now(0)).save(&many, now(0)).restore(&few, now(0), LastStop::Crash);
    assert_eq!(restored.tokens(now(0).mono), Some(10), "all that may have been out are forgone");
}

/// Anything that can happen to a lane, in any order.
#[derive(Clone, Debug)]
enum Act {
    Pass(i64),
    JumpWall(i64),
    Send(u8, Option<i64>),
    Answer(usize, Outcome),
    Pause,
    Resume,
    RetryNow,
    Restart(bool),
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => (100_u16..600, prop::option::of(1_i64..90_000)).prop_map(|(status, after)| Outcome::classify(status, after.map(Millis::seconds))),
        2 => Just(Outcome::Success { status: 200 }),
        1 => Just(Outcome::Timeout),
        1 => Just(Outcome::NetworkError(NetworkFault::Reset)),
        1 => Just(Outcome::Blocked),
        1 => Just(Outcome::Cancelled),
    ]
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_i64..200_000).prop_map(Act::Pass),
        1 => (-100_000_000_000_i64..100_000_000_000).prop_map(Act::JumpWall),
        8 => (0_u8..6, prop::option::of(0_i64..100_000)).prop_map(|(id, ttl)| Act::Send(id, ttl)),
        8 => (0_usize..8, any_outcome()).prop_map(|(index, outcome)| Act::Answer(index, outcome)),
        1 => Just(Act::Pause),
        2 => Just(Act::Resume),
        1 => Just(Act::RetryNow),
        1 => any::<bool>().prop_map(Act::Restart),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (any::<bool>(), prop::option::of((1_u64..600, 1_u64..50, any::<bool>())), 1_u64..20, any::<bool>())
        .prop_map(|(quiet, rate, concurrency, breaker)| Policy {
            quiet: if quiet { night_window() } else { QuietHours::none() },
            rate_limit: rate.map(|(max, burst, adaptive)| RateLimit {
                quota: Quota::new(max, Per::Minute, Some(burst)).unwrap(),
                mode: if adaptive { RateMode::Adaptive } else { RateMode::Fixed },
            }),
            max_concurrency: Concurrency::new(concurrency).unwrap(),
            breaker: BreakerPolicy { enabled: breaker, ..BreakerPolicy::default() },
            ..Policy::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens to a lane: explain and decide agree, `until` is honest, the bounds hold, nothing panics.
    #[test]
    fn the_answer_is_always_consistent(policy in any_policy(), acts in prop::collection::vec(any_act(), 1..120)) {
        let mut time = now(0);
        let mut lane = LaneState::new(&policy, time);
        let mut out = Vec::new();
        for act in acts {
            match act {
                Act::Pass(ms) => time = Now { wall: time.wall + Millis::new(ms), mono: Mono::from_millis(time.mono.as_millis() + ms) },
                Act::JumpWall(ms) => time.wall = time.wall + Millis::new(ms),
                Act::Pause => lane.standing.paused = Some(time.wall),
                Act::Resume => lane.standing.paused = None,
                Act::RetryNow => lane.retry_now(time.wall),
                Act::Restart(clean) => {
                    let stop = if clean { LastStop::Clean } else { LastStop::Crash };
                    lane = lane.save(&policy, time).restore(&policy, time, stop);
                    out.clear();
                }
                Act::Send(id, ttl) => {
                    let incoming = Incoming { ttl: ttl.map(Millis::new), ..incoming(id.into()) };
                    let delivery = accept(time.wall, incoming, &policy, &Terms::default());
                    let quiet = policy.quiet.mask_for(&delivery.event_type);
                    lane.unsaved_starts = 0;
                    let question = Question { now: time, delivery: &delivery, turn: Turn::Its, quiet, policy: &policy, lane: &lane };
                    check_consistency(&question)?;
                    if let Decision::Go(go) = decide(&question) {
                        out.push((lane.start(time, delivery.id, go), delivery));
                    }
                    prop_assert!(lane.in_flight <= policy.max_concurrency.get());
                }
                Act::Answer(index, outcome) if !out.is_empty() => {
                    let (attempt, mut delivery) = out.swap_remove(index % out.len());
                    let elapsed = time.mono.since(attempt.started.mono).min(attempt.timeout);
                    lane.finish(time, &policy, delivery.id, &attempt, &Report { outcome, elapsed, rate_hint: None });
                    settle(time.wall, &mut delivery, &policy, outcome, Draw(index as u64));
                    if let (Status::RetryScheduled { at, .. }, Some(expiry)) = (delivery.status, delivery.expires_at) {
                        prop_assert!(at < expiry);
                    }
                }
                Act::Answer(..) => {}
            }
        }
    }
}

fn check_consistency(question: &Question<'_>) -> Result<(), TestCaseError> {
    let Explanation { gates, decision } = explain(question);
    prop_assert_eq!(decision, decide(question));
    let first = gates.iter().find_map(|gate| gate.hold);
    match decision {
        Decision::Go(go) => {
            prop_assert_eq!(first, None, "it goes only if every gate is open");
            let expiry = question.delivery.expires_at;
            prop_assert!(expiry.is_none_or(|expiry| question.now.wall + go.timeout <= expiry));
        }
        Decision::Wait(wait) => {
            prop_assert_eq!(first, Some(wait.hold));
            prop_assert!(wait.not_before >= question.now.wall);
            prop_assert!(wait.until.is_none_or(|until| until == wait.not_before));
            if wait.will_expire {
                let then = Question { now: passed_to(question.now, wait.not_before), ..*question };
                prop_assert!(
                    !matches!(decide(&then), Decision::Go(_)),
                    "it was said that it could not make it"
                );
            }
            if let Some(until) = wait.until {
                prop_assert!(until > question.now.wall);
                let then = passed_to(question.now, until);
                let later = Question { now: then, ..*question };
                let opens = !matches!(decide(&later), Decision::Wait(_));
                prop_assert!(opens, "{:?} promised {until}, but then {:?}", wait, decide(&later));
                let before = Question { now: passed_to(question.now, until - Millis::new(1)), ..*question };
                let early = matches!(decide(&before), Decision::Go(_));
                prop_assert!(!early, "it could have gone before {until}");
            }
        }
        Decision::Finish(_) | Decision::Nothing => {}
    }
    Ok(())
}

fn passed_to(now: Now, wall: Timestamp) -> Now {
    Now { wall, mono: Mono::from_millis(now.mono.as_millis().saturating_add((wall - now.wall).get())) }
}

/// The window is from 05:00 to 11:00 in UTC, and it is 05:30.
#[test]
fn a_backlog_rests_in_every_night_that_comes_between() {
    let policy = Policy { quiet: night_window(), ..Policy::default() };
    let hours = |hours: i64| at(0) + Millis::minutes(hours * 60 + 30);
    let mask = policy.quiet.mask_without_type();
    let drained = |until: Timestamp| through_quiet_hours(hours(5), until, &policy, mask);
    assert_eq!(drained(hours(5)), hours(5), "it opens at 11:00, and there is nothing to do");
    assert_eq!(drained(hours(22)), hours(22), "17 hours fit into the day");
    assert_eq!(drained(hours(24)), hours(30), "one night");
    assert_eq!(drained(hours(45)), hours(57), "two nights");
    let payment = policy.quiet.mask_for(&EventType::parse("payment.failed").unwrap());
    assert_eq!(through_quiet_hours(at(0), hours(1_000), &policy, payment), hours(1_000), "it passes");
}
