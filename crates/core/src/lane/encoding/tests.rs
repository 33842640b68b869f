use proptest::prelude::*;

use super::*;
use crate::gate::{Go, Probe};
use crate::id::DeliveryId;
use crate::lane::{LastStop, Report, Unavailable};
use crate::outcome::{Outcome, any_outcome};
use crate::policy::Concurrency;
use crate::rate::Per;
use crate::rate_headers::RateHint;
use crate::time::Millis;

const START: i64 = 1_777_600_000_000;

fn id(n: u128) -> DeliveryId {
    DeliveryId::from_bits(n)
}

/// One attempt and how it ended.
#[derive(Clone, Debug)]
struct Try {
    pass: i64,
    delivery: u128,
    probe: Option<Probe>,
    elapsed: i64,
    outcome: Outcome,
    hint: bool,
    rest: Option<i64>,
    held: Option<usize>,
}

fn any_try() -> impl Strategy<Value = Try> {
    let probe = prop_oneof![Just(None), Just(Some(Probe::Breaker)), Just(Some(Probe::Throttle))];
    let outcome = prop_oneof![
        3 => any_outcome(),
        2 => Just(Outcome::Success { status: 200 }),
        1 => Just(Outcome::Timeout),
        1 => Just(Outcome::RateLimited { retry_after: None }),
    ];
    (
        0_i64..40_000_000,
        0_u128..5,
        probe,
        0_i64..20_000,
        outcome,
        any::<bool>(),
        prop::option::of(-9_000_000_i64..9_000_000),
        prop::option::of(0_usize..HoldReason::ALL.len()),
    )
        .prop_map(|(pass, delivery, probe, elapsed, outcome, hint, rest, held)| Try {
            pass,
            delivery,
            probe,
            elapsed,
            outcome,
            hint,
            rest,
            held,
        })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let limit =
        (1_u64..600, 0_usize..4, 1_u64..100, any::<bool>()).prop_map(|(max, per, burst, adaptive)| {
            let quota = Quota::new(max, Per::ALL[per], Some(burst)).unwrap();
            RateLimit { quota, mode: if adaptive { RateMode::Adaptive } else { RateMode::Fixed } }
        });
    (prop::option::of(limit), 1_u64..100).prop_map(|(rate_limit, max)| Policy {
        rate_limit,
        max_concurrency: Concurrency::new(max).unwrap(),
        ..Policy::default()
    })
}

/// A lane with a past.
fn lived(policy: &Policy, tries: &[Try], halted: &[String]) -> (LaneState, Now) {
    let mut now = Now::at(START);
    let mut lane = LaneState::new(policy, now);
    for each in tries {
        now = Now::at(now.mono.as_millis() + each.pass);
        let go = Go { timeout: Millis::seconds(10), cut_short: false, probe: each.probe };
        let attempt = lane.start(now, id(each.delivery), go);
        now = Now::at(now.mono.as_millis() + each.elapsed);
        let rate_hint = each.hint.then(|| RateHint {
            limit: None,
            remaining: Some(5),
            reset: Some(Millis::minutes(3)),
            window: None,
        });
        let report = Report { outcome: each.outcome, elapsed: Millis::new(each.elapsed), rate_hint };
        lane.finish(now, policy, id(each.delivery), &attempt, &report);
        if let Some(rest) = each.rest {
            lane.rested(now.wall + Millis::new(rest));
        }
        lane.held = each.held.map(|place| (HoldReason::ALL[place], now.wall - Millis::new(each.elapsed)));
    }
    let stands = |(n, key): (u128, &String)| HaltedLine {
        line: Line::Key(key.as_str().into()),
        head: id(n),
        since: (n % 2 == 0).then_some(now.wall),
    };
    lane.halted = (0..).zip(halted).map(stands).collect();
    if halted.len() == 1 {
        lane.halted[0].line = Line::Whole;
    }
    (lane, now)
}

/// Everything there is to know of a restored lane; its samples day by day, whichever of them is taken for today.
fn shown(mut lane: LaneState) -> (String, Vec<u8>) {
    let samples = lane.encode_timeouts();
    lane.timeouts = Timeouts::new();
    (format!("{lane:?}"), samples)
}

proptest! {
    #[test]
    fn a_lane_read_back_is_the_lane_that_was_stored(
        policy in any_policy(),
        new_policy in any_policy(),
        tries in prop::collection::vec(any_try(), 0..40),
        halted in prop::collection::vec("[a-zé]{0,8}", 0..4),
        crashed: bool,
        down in 0_i64..100_000_000,
    ) {
        let (lane, now) = lived(&policy, &tries, &halted);
        let saved = lane.save(&policy, now);
        let (state, timeouts) = (saved.encode_state(), saved.encode_timeouts());
        prop_assert_eq!(&state, &lane.encode_state(&policy, now));
        let read = SavedLane::decode(&state, Some(&timeouts)).expect("what was written can be read");
        prop_assert_eq!(read.encode_state(), state);
        prop_assert_eq!(read.encode_timeouts(), timeouts);
        let stop = if crashed { LastStop::Crash } else { LastStop::Clean };
        // The wall clock went on; the new process has a monotonic clock of its own.
        let later = Now { wall: now.wall + Millis::new(down), mono: Mono::from_millis(77) };
        let restored = read.restore(&new_policy, later, stop);
        prop_assert_eq!(shown(restored), shown(saved.restore(&new_policy, later, stop)));
    }

    #[test]
    fn no_bytes_make_it_panic(
        policy in any_policy(),
        mut state in prop::collection::vec(any::<u8>(), 0..200),
        mut timeouts in prop::collection::vec(any::<u8>(), 0..100),
        tries in prop::collection::vec(any_try(), 0..4),
    ) {
        if let Some(version) = state.first_mut() { *version = VERSION; }
        if let Some(version) = timeouts.first_mut() { *version = 1; }
        for timeouts in [None, Some(&timeouts[..])] {
            if let Some(read) = SavedLane::decode(&state, timeouts) {
                use_it(read, &policy, &tries);
            }
        }
    }

    #[test]
    fn no_damage_makes_it_panic(
        policy in any_policy(),
        tries in prop::collection::vec(any_try(), 0..20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (lane, now) = lived(&policy, &tries, &["a".into()]);
        let (mut state, mut timeouts) = (lane.encode_state(&policy, now), lane.encode_timeouts());
        for (place, byte) in damage {
            let (state_place, timeouts_place) = (place.index(state.len()), place.index(timeouts.len()));
            state[state_place] = byte;
            timeouts[timeouts_place] = byte;
        }
        for (state, timeouts) in [
            (&state[..], &timeouts[..]),
            (&state[..cut.index(state.len())], &timeouts[..]),
            (&lane.encode_state(&policy, now)[..], &timeouts[..cut.index(timeouts.len())]),
        ] {
            if let Some(read) = SavedLane::decode(state, Some(timeouts)) {
                use_it(read, &policy, &tries);
            }
        }
    }
}

/// Whatever was read can be worked with.
fn use_it(read: SavedLane, policy: &Policy, tries: &[Try]) {
    let mut now = Now::at(START);
    let mut lane = read.restore(policy, now, LastStop::Crash);
    for each in tries {
        now = Now::at(now.mono.as_millis() + each.pass);
        lane.refresh(now.wall, policy);
        lane.tokens_wait(policy, now.mono, 9);
        let timeout = lane.timeout(policy, each.probe);
        let attempt = lane.start(now, id(each.delivery), Go { timeout, cut_short: false, probe: each.probe });
        let report = Report { outcome: each.outcome, elapsed: Millis::new(each.elapsed), rate_hint: None };
        lane.finish(now, policy, id(each.delivery), &attempt, &report);
    }
    lane.encode_state(policy, now);
    lane.encode_timeouts();
}

#[test]
fn a_healthy_lane_looks_the_same_after_each_success() {
    let policy = Policy::default();
    let mut lane = LaneState::new(&policy, Now::at(START));
    let go = Go { timeout: Millis::seconds(10), cut_short: false, probe: None };
    let mut seen = Vec::new();
    for n in 0_i64..200 {
        let now = Now::at(START + n * 40_000);
        let attempt = lane.start(now, id(n.unsigned_abs().into()), go);
        let waiting = lane.start(now, id(9_999), go);
        lane.held = Some((HoldReason::AtCapacity, now.wall));
        // Of what is over, when it ended does not matter.
        lane.rested(now.wall);
        lane.unavailable = Some(Unavailable { since: now.wall - Millis::new(9 + n), until: now.wall });
        let report = Report {
            outcome: Outcome::Success { status: 200 },
            elapsed: Millis::new(30 + n),
            rate_hint: None,
        };
        let ended = Now::at(now.mono.as_millis() + 30 + n);
        lane.finish(ended, &policy, id(n.unsigned_abs().into()), &attempt, &report);
        seen.push(lane.encode_state(&policy, ended));
        lane.finish(ended, &policy, id(9_999), &waiting, &report);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
    assert!(seen[0].len() < 32, "{} bytes", seen[0].len());
}

/// Versions before kept only the end of a wait.
#[test]
fn a_wait_without_its_beginning_is_read() {
    let policy = Policy::default();
    let mut lane = LaneState::new(&policy, Now::at(START));
    let until = Now::at(START + 60_000).wall;
    lane.unavailable = Some(Unavailable { since: Now::at(START).wall, until });
    let mut saved = lane.save(&policy, Now::at(START));
    saved.lasting.unavailable = Some(SavedWait { since: None, until });
    let read = SavedLane::decode(&saved.encode_state(), None).unwrap();
    let later = Now::at(START + 20_000);
    let wait = read.restore(&policy, later, LastStop::Crash).unavailable;
    assert_eq!(wait, Some(Unavailable { since: later.wall, until }), "it is there since it was read");
}

#[test]
fn another_version_is_not_read() {
    let policy = Policy::default();
    let lane = LaneState::new(&policy, Now::at(START));
    let (mut state, mut timeouts) = (lane.encode_state(&policy, Now::at(START)), lane.encode_timeouts());
    assert!(SavedLane::decode(&state, Some(&timeouts)).is_some());
    assert!(SavedLane::decode(&state, None).is_some());
    assert!(SavedLane::decode(&[], None).is_none());
    timeouts[0] += 1;
    assert!(SavedLane::decode(&state, Some(&timeouts)).is_none());
    state[0] += 1;
    assert!(SavedLane::decode(&state, None).is_none());
}
