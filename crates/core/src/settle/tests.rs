use proptest::prelude::*;

use super::*;
use crate::delivery::HoldReason;
use crate::delivery::any_end;
use crate::outcome::{NetworkFault, any_outcome};
use crate::policy::PermanentStatuses;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_777_600_000_000 + seconds * 1_000)
}

fn incoming() -> Incoming {
    Incoming::new(DeliveryId::from_bits(1), 1, EventType::parse("otp.requested").unwrap())
}

fn accepted(incoming: Incoming) -> Delivery {
    accept(at(0), incoming, &Policy::default(), &Terms::default())
}

fn after(delivery: &mut Delivery, seconds: i64, outcome: Outcome) -> Status {
    settle(at(seconds), delivery, &Policy::default(), outcome, Draw(u64::MAX / 2));
    delivery.status
}

#[test]
fn the_earliest_expiry_counts() {
    let minute = Some(Millis::minutes(1));
    let terms = Terms { type_ttl: Some(Millis::seconds(40)), ..Terms::default() };
    for (expires_at, ttl, terms, expected) in [
        (None, None, Terms::default(), None),
        (Some(at(90)), None, Terms::default(), Some(at(90))),
        (Some(at(90)), minute, Terms::default(), Some(at(60))),
        (Some(at(90)), minute, terms.clone(), Some(at(40))),
        (Some(at(30)), minute, terms, Some(at(30))),
    ] {
        let delivery = accept(at(0), Incoming { expires_at, ttl, ..incoming() }, &Policy::default(), &terms);
        assert_eq!(delivery.expires_at, expected);
    }
}

#[test]
fn what_comes_in_expired_is_recorded_as_that() {
    let delivery = accepted(Incoming { expires_at: Some(at(0)), ..incoming() });
    assert_eq!(delivery.status, Status::Final(End::Expired(Late::OnArrival)));
}

#[test]
fn what_is_scheduled_for_after_its_expiry_expires_at_once() {
    let late = Incoming { expires_at: Some(at(60)), deliver_at: Some(at(60)), ..incoming() };
    assert_eq!(accepted(late).status, Status::Final(End::Expired(Late::Behind(HoldReason::Scheduled))));
}

#[test]
fn nothing_occurs_after_its_acceptance() {
    for (claimed, counted) in [(None, 0), (Some(-5), -5), (Some(5), 0)] {
        let delivery = accepted(Incoming { occurred_at: claimed.map(at), ..incoming() });
        assert_eq!(delivery.place.occurred_at, at(counted));
    }
    let ahead = Incoming { sequence: Sequence::at(at(0) + Millis::new(1)).get(), ..incoming() };
    let ahead = accepted(ahead);
    assert!(ahead.place.occurred_at > at(0), "its place goes by the number");
    assert_eq!(ahead.occurred_at(), at(0), "which nobody is told");
}

/// Two nodes know the time only within bounds: the later number may come from the one whose clock is behind.
#[test]
fn what_has_the_later_number_has_its_place_behind_whatever_the_clocks_say() {
    let numbered = |ms| Incoming { sequence: Sequence::at(at(0) + Millis::new(ms)).get(), ..incoming() };
    let accepted = |now, ms| {
        let now = at(0) + Millis::new(now);
        accept(now, numbered(ms), &Policy::default(), &Terms::default()).place
    };
    assert!(accepted(90, 100) < accepted(20, 105));
    let late = Incoming { occurred_at: Some(at(1)), ..numbered(100) };
    let late = accept(at(0), late, &Policy::default(), &Terms::default()).place;
    assert!(late < accepted(20, 105));
}

#[test]
fn the_maximum_age_counts_from_the_scheduled_time() {
    let delivery = accepted(Incoming { deliver_at: Some(at(3_600)), ..incoming() });
    assert_eq!(delivery.status, Status::RetryScheduled { at: at(3_600), reason: OwnTime::Scheduled });
    assert_eq!(delivery.too_old_at, at(3_600) + Millis::days(7));
}

#[test]
fn each_outcome_leads_where_the_table_says() {
    let retry = |seconds| Status::RetryScheduled { at: at(seconds), reason: OwnTime::RetryBackoff };
    for (outcome, expected, used) in [
        (Outcome::Success { status: 200 }, Status::Final(End::Delivered), 1),
        (Outcome::RateLimited { retry_after: None }, Status::Queued, 0),
        (Outcome::Cancelled, Status::Queued, 0),
        (Outcome::Gone, Status::Final(End::DeadLetter(Dead::Gone)), 1),
        (Outcome::HttpError { status: 500 }, retry(40), 1),
        (Outcome::HttpError { status: 404 }, retry(40), 1),
        (Outcome::Redirect { status: 302 }, retry(40), 1),
        (Outcome::Timeout, retry(40), 1),
        (Outcome::NetworkError(NetworkFault::Tls), retry(40), 1),
        (Outcome::Blocked, retry(40), 1),
        (Outcome::Unavailable { retry_after: Millis::seconds(5) }, retry(15), 1),
    ] {
        let mut delivery = accepted(incoming());
        let status = after(&mut delivery, 10, outcome);
        let close = match (status, expected) {
            (Status::RetryScheduled { at: a, .. }, Status::RetryScheduled { at: b, .. }) => {
                (a - b).get().abs() <= 1
            }
            _ => status == expected,
        };
        assert!(close, "{outcome:?} led to {status:?}");
        assert_eq!((delivery.attempts_made, delivery.attempts_used), (1, used), "{outcome:?}");
    }
}

#[test]
fn a_permanent_status_is_final_at_once() {
    let policy =
        Policy { permanent_statuses: PermanentStatuses::new(vec![400, 422]).unwrap(), ..Policy::default() };
    let mut delivery = accepted(incoming());
    settle(at(1), &mut delivery, &policy, Outcome::HttpError { status: 422 }, Draw(0));
    assert_eq!(delivery.status, Status::Final(End::DeadLetter(Dead::PermanentStatus(422))));
}

#[test]
fn five_failures_are_a_dead_letter_and_429s_are_none() {
    let mut delivery = accepted(incoming());
    for _ in 0..40 {
        assert_eq!(after(&mut delivery, 1, Outcome::RateLimited { retry_after: None }), Status::Queued);
    }
    for _ in 0..4 {
        assert!(!after(&mut delivery, 2, Outcome::Timeout).is_final());
    }
    assert_eq!(
        after(&mut delivery, 3, Outcome::Timeout),
        Status::Final(End::DeadLetter(Dead::AttemptsUsedUp(Outcome::Timeout)))
    );
}

#[test]
fn a_one_time_password_is_tried_four_times_and_then_expires() {
    let mut delivery = accepted(Incoming { ttl: Some(Millis::seconds(60)), ..incoming() });
    let mut now = 0;
    let mut tries = vec![];
    while let Status::Queued | Status::RetryScheduled { .. } = delivery.status {
        if let Status::RetryScheduled { at: next, .. } = delivery.status {
            now = (next - at(0)).get() / 1_000;
        }
        tries.push(now);
        after(&mut delivery, now, Outcome::HttpError { status: 500 });
    }
    assert_eq!(tries, [0, 15, 30, 45]);
    assert_eq!(delivery.status.word(), "expired");
    assert!(matches!(delivery.status, Status::Final(End::Expired(Late::RetryTooLate(_)))));
}

#[test]
fn an_attempt_that_ends_past_expiry_expires_even_if_it_was_the_last() {
    let mut delivery = accepted(Incoming { expires_at: Some(at(20)), ..incoming() });
    delivery.attempts_used = 40;
    assert!(matches!(after(&mut delivery, 20, Outcome::Timeout), Status::Final(End::Expired(_))));
}

#[test]
fn a_retry_beyond_the_maximum_age_is_given_up_now() {
    let mut delivery = accepted(incoming());
    let week = 7 * 86_400;
    assert_eq!(
        after(&mut delivery, week - 10, Outcome::Timeout),
        Status::Final(End::DeadLetter(Dead::TooOld(None)))
    );
}

#[test]
fn every_end_says_why_in_a_sentence() {
    assert_eq!(End::Expired(Late::Behind(HoldReason::QuietHours)).to_string(), "expired behind quiet_hours");
    let last = Outcome::HttpError { status: 500 };
    assert_eq!(
        End::DeadLetter(Dead::AttemptsUsedUp(last)).to_string(),
        "every attempt was used; the last ended with status 500"
    );
}

#[test]
fn a_replay_is_a_new_delivery_that_comes_after_what_is_there() {
    let original =
        accepted(Incoming { ttl: Some(Millis::seconds(60)), occurred_at: Some(at(-9)), ..incoming() });
    let again = ReplayAs { id: DeliveryId::from_bits(2), sequence: 9, priority: Priority::BULK };
    for (ttl, expires_at, word) in [
        (ReplayTtl::Reset, Some(at(660)), "queued"),
        (ReplayTtl::Keep, Some(at(60)), "expired"),
        (ReplayTtl::None, None, "queued"),
    ] {
        let terms = Terms { type_ttl: Some(Millis::seconds(5)), ..Terms::default() };
        let delivery = replay(at(600), &original, again, ttl, &Policy::default(), &terms);
        assert_eq!((delivery.expires_at, delivery.status.word()), (expires_at, word), "{ttl:?}");
        assert_eq!((delivery.place.occurred_at, delivery.attempts_made), (at(600), 0));
        // What was stale when it came in has no life that could be given again: only that of its type.
        let stale =
            Delivery { expires_at: Some(original.accepted_at - Millis::seconds(60)), ..original.clone() };
        let delivery = replay(at(600), &stale, again, ttl, &Policy::default(), &terms);
        let expires_at = match ttl {
            ReplayTtl::Reset => Some(at(605)),
            ReplayTtl::Keep => stale.expires_at,
            ReplayTtl::None => None,
        };
        assert_eq!(delivery.expires_at, expires_at, "{ttl:?}");
    }
}

proptest! {
    /// Invariant I12: no final state is left, and no count of attempts falls.
    #[test]
    fn what_is_over_stays_over(
        end in any_end(),
        first in any_outcome(),
        outcomes in prop::collection::vec(any_outcome(), 1..20),
        open_first: bool,
        bits: u64,
    ) {
        let mut delivery = accepted(incoming());
        if open_first {
            after(&mut delivery, 1, first);
        } else {
            delivery.status = Status::Final(end);
        }
        let mut over = None;
        for (seconds, outcome) in (2..).zip(outcomes) {
            let before = delivery.clone();
            over = over.or(Some(before.status).filter(Status::is_final));
            settle(at(seconds), &mut delivery, &Policy::default(), outcome, Draw(bits));
            prop_assert_eq!(over.unwrap_or(delivery.status), delivery.status);
            prop_assert_eq!(delivery.attempts_made, before.attempts_made + 1);
            prop_assert!(delivery.attempts_used >= before.attempts_used);
        }
    }

    #[test]
    fn no_retry_starts_early_late_or_without_end(ttl in prop::option::of(0_i64..4_000), took in 0_i64..31, bits: u64, wait in 1_i64..86_401) {
        let mut delivery = accepted(Incoming { ttl: ttl.map(Millis::seconds), ..incoming() });
        let (mut now, mut attempts) = (0_i64, 0);
        while !delivery.status.is_final() {
            attempts += 1;
            prop_assert!(attempts < 500);
            now += took;
            let (outcome, least) = match bits % 3 {
                0 => (Outcome::Unavailable { retry_after: Millis::seconds(wait) }, wait * 1_000),
                _ => (Outcome::Timeout, 12_000),
            };
            settle(at(now), &mut delivery, &Policy::default(), outcome, Draw(bits));
            if let Status::RetryScheduled { at: next, .. } = delivery.status {
                prop_assert!((next - at(now)).get() >= least);
                prop_assert!(delivery.expires_at.is_none_or(|expiry| next < expiry));
                prop_assert!(next < delivery.too_old_at);
                now = (next - at(0)).get() / 1_000 + 1;
            }
        }
    }
}
