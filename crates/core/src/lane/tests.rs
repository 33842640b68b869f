use super::*;
use crate::outcome::Outcome;
use crate::policy::Concurrency;
use crate::rate::{Per, Quota};

const OK: Outcome = Outcome::Success { status: 200 };
const FAILED: Outcome = Outcome::HttpError { status: 500 };

/// A lane of `policy` that dares as much as it may.
fn confident(policy: &Policy) -> LaneState {
    let mut lane = LaneState::new(policy, Now::at(0));
    for _ in 0..4 {
        exchange(&mut lane, policy, 0, OK);
    }
    assert_eq!(lane.ramp.limit(8), 8);
    lane
}

fn eight_at_once() -> Policy {
    Policy { max_concurrency: Concurrency::new(8).unwrap(), ..Policy::default() }
}

/// One attempt for a delivery of this number, and how it ended.
fn exchange(lane: &mut LaneState, policy: &Policy, delivery: u128, outcome: Outcome) {
    let attempt = start(lane, delivery);
    end(lane, policy, delivery, &attempt, outcome);
}

fn start(lane: &mut LaneState, delivery: u128) -> Attempt {
    let go = Go { timeout: Millis::seconds(10), cut_short: false, probe: None };
    lane.start(Now::at(1_000), DeliveryId::from_bits(delivery), go)
}

fn end(lane: &mut LaneState, policy: &Policy, delivery: u128, attempt: &Attempt, outcome: Outcome) {
    let report = Report { outcome, elapsed: Millis::new(20), rate_hint: None };
    lane.finish(Now::at(1_020), policy, DeliveryId::from_bits(delivery), attempt, &report);
}

#[test]
fn after_a_throttle_one_at_a_time_goes() {
    let policy = eight_at_once();
    for outcome in [
        Outcome::RateLimited { retry_after: None },
        Outcome::RateLimited { retry_after: Some(Millis::seconds(5)) },
        Outcome::Unavailable { retry_after: Millis::seconds(5) },
    ] {
        let mut lane = confident(&policy);
        exchange(&mut lane, &policy, 1, outcome);
        assert_eq!(lane.ramp.limit(8), 1, "{outcome:?}");
    }
}

#[test]
fn what_was_on_its_way_before_an_unavailable_does_not_raise_the_ramp() {
    let policy = eight_at_once();
    let mut lane = confident(&policy);
    let on_their_way: Vec<Attempt> = (0..8).map(|delivery| start(&mut lane, delivery)).collect();
    let unavailable = Outcome::Unavailable { retry_after: Millis::seconds(5) };
    for (delivery, attempt) in (0..).zip(&on_their_way) {
        end(&mut lane, &policy, delivery, attempt, if delivery == 0 { unavailable } else { OK });
    }
    assert_eq!(lane.ramp.limit(8), 1);
}

#[test]
fn after_an_open_breaker_one_at_a_time_goes() {
    let policy = eight_at_once();
    let mut lane = confident(&policy);
    // Eight are out; the fifth failure in a row opens it, and what the failures had left of the ramp is over.
    let mut neutral: Vec<Attempt> = (0..8).map(|delivery| start(&mut lane, delivery)).collect();
    lane.ramp.raise(8);
    for (delivery, attempt) in (0..).zip(neutral.drain(..5)) {
        for _ in 0..4 {
            lane.ramp.raise(8);
        }
        end(&mut lane, &policy, delivery, &attempt, FAILED);
    }
    assert!(lane.breaker.open().is_some());
    assert_eq!(lane.ramp.limit(8), 1);
}

#[test]
fn a_restart_does_not_fill_the_bucket() {
    let quota = Quota::new(6, Per::Minute, Some(4)).unwrap();
    let limit = RateLimit { quota, mode: RateMode::Fixed };
    let policy = Policy { rate_limit: Some(limit), ..eight_at_once() };
    let mut lane = LaneState::new(&policy, Now::at(1_000));
    for delivery in 0..4 {
        exchange(&mut lane, &policy, delivery, OK);
    }
    assert_eq!(lane.tokens(Now::at(1_020).mono), Some(0));
    let saved = lane.save(&policy, Now::at(1_020));
    let restored = saved.clone().restore(&policy, Now::at(1_020), LastStop::Clean);
    assert_eq!(restored.tokens(Now::at(1_020).mono), Some(0), "none is gained");
    assert_eq!(
        restored.tokens(Now::at(11_020).mono),
        Some(1),
        "and none is lost: one comes every ten seconds"
    );
    let crashed = saved.restore(&policy, Now::at(1_020), LastStop::Crash);
    assert_eq!(crashed.tokens(Now::at(1_020).mono), Some(0));
    assert_eq!(
        crashed.tokens(Now::at(11_020).mono),
        Some(1),
        "starts that were not written took no more than there was"
    );
    let saved = LaneState::new(&policy, Now::at(1_000)).save(&policy, Now::at(1_000));
    let crashed = saved.restore(&policy, Now::at(2_000), LastStop::Crash);
    assert_eq!(crashed.tokens(Now::at(2_000).mono), Some(0), "of four that were there, all may be gone");
}

#[test]
fn a_destination_is_unavailable_since_it_first_said_so() {
    let policy = eight_at_once();
    let mut lane = confident(&policy);
    let wait = |lane: &LaneState, now: i64| {
        let wait = lane.unavailable_at(Timestamp::from_millis(now));
        wait.map(|wait| (wait.since.as_millis(), wait.until.as_millis()))
    };
    // (asked at, for how long, since and until when it then waits)
    for (at, seconds, expected) in [
        (1_000, 10, (1_000, 11_000)),
        (2_000, 60, (1_000, 62_000)),
        (3_000, 1, (1_000, 62_000)),
        (62_000, 5, (62_000, 67_000)),
    ] {
        let attempt = start(&mut lane, 1);
        let outcome = Outcome::Unavailable { retry_after: Millis::seconds(seconds) };
        let report = Report { outcome, elapsed: Millis::new(20), rate_hint: None };
        lane.finish(Now::at(at), &policy, DeliveryId::from_bits(1), &attempt, &report);
        assert_eq!(wait(&lane, at), Some(expected), "asked at {at}");
        let stored = lane.save(&policy, Now::at(at)).encode_state();
        let read = SavedLane::decode(&stored, None).unwrap();
        let restored = read.restore(&policy, Now::at(at + 500), LastStop::Clean);
        assert_eq!(wait(&restored, at + 500), Some(expected), "also after a restart");
    }
    assert_eq!(wait(&lane, 67_000), None);
}

/// What they asked for is a length of time: a clock that is set makes it neither longer nor shorter, also over a start.
#[test]
fn a_clock_that_is_set_changes_no_wait() {
    let policy = eight_at_once();
    let ten_years = Millis::days(3_650);
    let ahead = |at: Now| Now { wall: at.wall + ten_years, mono: at.mono };
    let waits = |lane: &LaneState, now: Timestamp| {
        let throttled = lane.throttle.shut().map(|(_, until)| until - now);
        let unavailable = lane.unavailable.map(|wait| (wait.since - now, wait.until - now));
        (throttled, unavailable, lane.breaker.open().map(|(_, until)| until - now))
    };
    let five = Millis::seconds(5);
    let mut throttled = confident(&policy);
    exchange(&mut throttled, &policy, 1, Outcome::RateLimited { retry_after: Some(five) });
    let mut unavailable = confident(&policy);
    exchange(&mut unavailable, &policy, 1, Outcome::Unavailable { retry_after: five });
    let mut open = confident(&policy);
    (0..10).for_each(|delivery| exchange(&mut open, &policy, delivery, FAILED));
    assert!(open.breaker.open().is_some());
    for lane in [&mut throttled, &mut unavailable, &mut open] {
        let now = Now::at(1_020);
        let before = waits(lane, now.wall);
        assert!(lane.clock_set(ten_years));
        assert_eq!(waits(lane, ahead(now).wall), before);
        // The server dies under the wrong clock, and starts under the right one.
        let started = lane.save(&policy, ahead(now)).restore(&policy, now, LastStop::Crash);
        assert_eq!(waits(&started, now.wall), before);
        lane.clock_set(Millis::ZERO - ten_years);
        assert_eq!(waits(lane, now.wall), before);
    }
}
