//! A limit of 100 a minute that becomes another one after a day.

use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};

use super::adaptive::{HEAD_START, START, world};
use super::{Shown, Telling};
use crate::report::Finding;
use crate::run::{Note, Observer, Sim, View};
use crate::traffic::Arrivals;
use crate::world::{Limiter, Says};

const BEFORE: u32 = 100;
const DOUBLED: u32 = 200;
const HALVED: u32 = 50;
const CHANGE_AT: Timestamp = Timestamp::from_millis(START.as_millis() + 86_400_000);
const FOLLOWED: Millis = Millis::hours(12);
/// A doubled limit must be found within this.
const TO_DOUBLE: Millis = Millis::hours(6);
/// And a halved one be kept within this: two throttles of a minute, and the time to meet them.
const TO_HALVE: Millis = Millis::minutes(5);
/// Found: so much of the limit used over [`SPAN`].
const FOUND: f64 = 0.95;
const SPAN: Millis = Millis::minutes(10);

/// Simulated time in all.
pub(super) const WHOLE: Millis = Millis::hours(4 * 36);

pub(super) fn run(seed: u64, telling: &mut Telling<'_>, shown: &mut Shown) {
    for (says, name) in [(Says::Nothing, "says nothing"), (Says::Seconds, "says seconds")] {
        for limit in [DOUBLED, HALVED] {
            let found = follow(seed, says, limit, telling, shown);
            let (target, allowed) = if limit > BEFORE {
                (format!("95% of {limit} a minute within {TO_DOUBLE}"), TO_DOUBLE)
            } else {
                (format!("at most {limit} a minute within {TO_HALVE}"), TO_HALVE)
            };
            let value = found.map_or_else(|| "never".to_owned(), minutes);
            shown.findings.push(Finding::check(
                format!("adaptive, {BEFORE} a minute become {limit}, {name}: followed after"),
                value,
                target,
                found.is_some_and(|after| after <= allowed),
            ));
        }
    }
}

fn minutes(length: Millis) -> String {
    format!("{:.0} min", (length.get() as f64 / 60_000.0).ceil())
}

fn follow(seed: u64, says: Says, limit: u32, telling: &mut Telling<'_>, shown: &mut Shown) -> Option<Millis> {
    let limiter = Limiter::new(BEFORE, Millis::minutes(1), says).changing(CHANGE_AT, limit);
    let end = CHANGE_AT + FOLLOWED;
    let per_minute = |count: u32, from, to| Arrivals::per_day(1_440.0 * f64::from(count), from, to);
    let waiting = Arrivals::Burst { at: START, count: HEAD_START };
    let before = per_minute(BEFORE, START, CHANGE_AT);
    let after = per_minute(limit, CHANGE_AT, end);
    let mut sim = Sim::new(world(seed, START, limiter, vec![waiting, before, after]), Follows::new(limit));
    for length in [CHANGE_AT - START, FOLLOWED] {
        sim.run_for(length);
        telling.passed(length, "a limit that changes");
    }
    shown.deliveries += sim.observer.delivered;
    shown.attempts += sim.observer.sent;
    sim.observer.after
}

/// Sees when a new limit is followed: a higher one, when it is used; a lower one, when the pace is under it.
struct Follows {
    limit: u32,
    after: Option<Millis>,
    span_from: Timestamp,
    in_span: u32,
    sent: u64,
    delivered: u64,
}

impl Follows {
    const fn new(limit: u32) -> Self {
        Self { limit, after: None, span_from: CHANGE_AT, in_span: 0, sent: 0, delivered: 0 }
    }

    fn answered(&mut self, view: &View<'_>, success: bool) {
        let now = view.now.wall;
        self.delivered += u64::from(success);
        if now < CHANGE_AT || self.after.is_some() {
            return;
        }
        let limit = f64::from(self.limit);
        if self.limit < BEFORE {
            let pace = view.dispatcher.lanes()[0].state().paced_per_minute(view.now.mono);
            if pace.is_some_and(|pace| pace <= limit) {
                self.after = Some(now - CHANGE_AT);
            }
            return;
        }
        self.in_span += u32::from(success);
        if now - self.span_from >= SPAN {
            let per_minute = f64::from(self.in_span) * 60_000.0 / (now - self.span_from).get() as f64;
            if per_minute >= FOUND * limit {
                self.after = Some(now - CHANGE_AT);
            }
            (self.span_from, self.in_span) = (now, 0);
        }
    }
}

impl Observer for Follows {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(..) => self.sent += 1,
            Note::Answered(_, _, answer) => {
                self.answered(view, matches!(answer.report.outcome, Outcome::Success { .. }));
            }
            _ => {}
        }
    }
}
