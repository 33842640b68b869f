//! What comes more than once, judged by what the server has written down, whatever the time between.
//!
//! An attempt's number is one more than the attempts that the store knows of. So a number that comes again tells that the
//! first request with it was never stored: its process died before it could. Nothing else explains a repeat.

use std::collections::{BTreeMap, HashMap};

use crate::checks::Seen;
use crate::lives::Lives;
use crate::log::{Attempt, Log};

/// Holds each delivery's requests against its attempts in the store; returns the requests that are not there.
pub(crate) fn find_lost<'a>(name: &str, seen: &'a [Seen<'a>], log: &Log, lives: &Lives) -> Vec<&'a Seen<'a>> {
    let mut by_delivery: HashMap<&str, Vec<&Seen<'_>>> = HashMap::new();
    for one in seen {
        by_delivery.entry(one.request.delivery_id()).or_default().push(one);
    }
    for delivery in log.keys() {
        assert!(by_delivery.contains_key(&**delivery), "{name} never saw {delivery}, which the log has");
    }
    let mut lost = Vec::new();
    for (delivery, requests) in by_delivery {
        let attempts = log.get(delivery).map(Vec::as_slice).unwrap_or_default();
        let story = || format!("{name}, {delivery}: received {requests:#?}, in the store {attempts:#?}");
        stored_as_one_story(attempts, &story);
        let numbers: Vec<u32> = requests.iter().map(|one| one.request.attempt()).collect();
        assert!(numbers.is_sorted(), "a number came after a higher one: {}", story());
        let mut by_number: BTreeMap<u32, Vec<&'a Seen<'a>>> = BTreeMap::new();
        for one in &requests {
            by_number.entry(one.request.attempt()).or_default().push(one);
        }
        for (number, same) in by_number {
            let attempt = attempts.iter().find(|attempt| attempt.number == number);
            let attempt = attempt.unwrap_or_else(|| panic!("{number} is not in the store: {}", story()));
            lost.extend(lost_of_number(&same, attempt, lives, &story));
        }
    }
    lost
}

/// Numbers without a gap, each once, and success ends it.
fn stored_as_one_story(attempts: &[Attempt], story: &dyn Fn() -> String) {
    for (attempt, number) in attempts.iter().zip(1..) {
        assert_eq!(attempt.number, number, "{}", story());
        let last = number as usize == attempts.len();
        assert_eq!(attempt.outcome == "success", last, "success is the end: {}", story());
    }
}

/// Requests with the same number: one in each life at most, and the one in the store is the last.
fn lost_of_number<'a>(
    same: &[&'a Seen<'a>],
    attempt: &Attempt,
    lives: &Lives,
    story: &dyn Fn() -> String,
) -> Vec<&'a Seen<'a>> {
    assert!(
        same.is_sorted_by(|before, after| before.life < after.life),
        "twice in one life of the server: {}",
        story()
    );
    let stored_in = lives.at(attempt.started_at);
    let mut lost = Vec::new();
    for one in same {
        if one.life != stored_in {
            assert!(one.life < stored_in, "sent again though its result was in the store: {}", story());
            lost.push(*one);
            continue;
        }
        assert!(attempt.started_at <= one.request.arrived_at, "it came before it started: {}", story());
        let status = attempt.status;
        assert!(
            status.is_none_or(|status| status == u64::from(one.request.answered)),
            "answered otherwise: {}",
            story()
        );
    }
    let reached = same.last().is_some_and(|last| last.life == stored_in);
    assert!(reached || attempt.status.is_none(), "an answer that nobody gave: {}", story());
    lost
}
