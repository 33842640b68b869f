//! What happened lately in each account, by the minute and by the hour: in memory, of this node, since it started.
//!
//! For people who look: what is kept for good is in the store, by the hour. Its memory grows with the accounts that do
//! something, and is bounded.

use std::collections::{HashMap, VecDeque};

use tidegate_core::delivery::End;
use tidegate_core::outcome::Outcome;
use tidegate_core::sketch::{Quantile, Sketch};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::AccountNo;
use tidegate_store::stats::Tally;

/// Accounts that are followed at a time: each needs a few kilobytes.
const MAX_ACCOUNTS: usize = 5_000;
/// The last hour by the minute, the last day by the hour.
const MINUTES: Steps = Steps { length: Millis::minutes(1), kept: 60 };
const HOURS: Steps = Steps { length: Millis::hours(1), kept: 24 };

#[derive(Clone, Copy)]
struct Steps {
    length: Millis,
    kept: i64,
}

/// What happened in a minute or an hour.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Its beginning.
    pub start: Timestamp,
    /// Events accepted.
    pub events: u64,
    /// What was counted.
    pub tally: Tally,
    /// How long attempts took.
    latency: Sketch,
}

impl Beat {
    /// So many of ten thousand attempts took no longer.
    pub fn quantile(&self, permyriad: u32) -> Option<Millis> {
        match self.latency.quantile(permyriad) {
            Quantile::At(time) => Some(time),
            Quantile::AmongCensored { beyond } => Some(beyond),
            Quantile::Empty => None,
        }
    }
}

#[derive(Debug, Default)]
struct Recent {
    minutes: VecDeque<Beat>,
    hours: VecDeque<Beat>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Pulse {
    accounts: HashMap<AccountNo, Recent>,
}

impl Pulse {
    pub(crate) fn accepted(&mut self, account: AccountNo, now: Timestamp, deliveries: usize) {
        self.beat(account, now, |beat| {
            beat.events += 1;
            beat.tally.accepted += deliveries as u64;
        });
    }

    pub(crate) fn attempted(&mut self, account: AccountNo, now: Timestamp, outcome: &Outcome, took: Millis) {
        self.beat(account, now, |beat| {
            beat.tally.attempts += 1;
            beat.tally.successes += u64::from(matches!(outcome, Outcome::Success { .. }));
            if matches!(outcome, Outcome::Timeout) {
                beat.tally.timeouts += 1;
                beat.latency.record_censored(took);
            } else {
                beat.latency.record(took);
            }
        });
    }

    pub(crate) fn ended(&mut self, account: AccountNo, now: Timestamp, end: &End) {
        self.beat(account, now, |beat| {
            *match end {
                End::Delivered => &mut beat.tally.delivered,
                End::DeadLetter(_) => &mut beat.tally.dead_letter,
                End::Expired(_) => &mut beat.tally.expired,
                End::Cancelled(_) => &mut beat.tally.cancelled,
            } += 1;
        });
    }

    /// The last hour of an account by the minute, the oldest first. Minutes without anything are left out.
    pub fn minutes(&self, account: AccountNo, now: Timestamp) -> Vec<Beat> {
        self.accounts.get(&account).map_or_else(Vec::new, |recent| MINUTES.read(&recent.minutes, now))
    }

    /// The last day of an account by the hour, likewise.
    pub fn hours(&self, account: AccountNo, now: Timestamp) -> Vec<Beat> {
        self.accounts.get(&account).map_or_else(Vec::new, |recent| HOURS.read(&recent.hours, now))
    }

    fn beat(&mut self, account: AccountNo, now: Timestamp, happened: impl Fn(&mut Beat)) {
        if self.accounts.len() >= MAX_ACCOUNTS && !self.accounts.contains_key(&account) {
            let old = now - Millis::hours(1);
            self.accounts.retain(|_, recent| recent.minutes.back().is_some_and(|beat| beat.start > old));
            if self.accounts.len() >= MAX_ACCOUNTS {
                return;
            }
        }
        let recent = self.accounts.entry(account).or_default();
        happened(MINUTES.current(&mut recent.minutes, now));
        happened(HOURS.current(&mut recent.hours, now));
    }
}

impl Steps {
    fn start(self, at: Timestamp) -> Timestamp {
        Timestamp::from_millis(at.as_millis() - at.as_millis().rem_euclid(self.length.get()))
    }

    fn oldest(self, now: Timestamp) -> Timestamp {
        self.start(now) - self.length.scaled(self.kept - 1, 1)
    }

    /// The beat of this moment. After a clock that was set back it is the last one that there is.
    fn current(self, beats: &mut VecDeque<Beat>, now: Timestamp) -> &mut Beat {
        let start = self.start(now);
        if beats.back().is_none_or(|last| last.start < start) {
            let oldest = self.oldest(now);
            while beats.front().is_some_and(|first| first.start < oldest) {
                beats.pop_front();
            }
            beats.push_back(Beat { start, events: 0, tally: Tally::ZERO, latency: Sketch::new() });
        }
        beats.back_mut().expect("one was pushed if there was none")
    }

    fn read(self, beats: &VecDeque<Beat>, now: Timestamp) -> Vec<Beat> {
        let oldest = self.oldest(now);
        beats.iter().filter(|beat| beat.start >= oldest).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AccountNo = AccountNo(1);

    #[test]
    fn an_hour_is_told_by_the_minute_and_what_is_older_is_forgotten() {
        let mut pulse = Pulse::default();
        let at = |minute: i64| Timestamp::from_millis(1_800_000_000_000) + Millis::minutes(minute);
        for minute in 0..90 {
            pulse.accepted(ONE, at(minute), 2);
            pulse.attempted(ONE, at(minute), &Outcome::Timeout, Millis::seconds(5));
            pulse.ended(AccountNo(2), at(minute), &End::Delivered);
        }
        let minutes = pulse.minutes(ONE, at(89));
        assert_eq!((minutes.len(), minutes[0].start), (60, at(30)));
        let counted = |beat: &Beat| (beat.events, beat.tally.accepted, beat.tally.delivered);
        assert!(minutes.iter().all(|beat| counted(beat) == (1, 2, 0)));
        let hours = pulse.hours(ONE, at(89));
        assert_eq!(hours.iter().map(|beat| beat.tally.timeouts).sum::<u64>(), 90);
        assert!(hours[0].quantile(9_900).is_some_and(|took| took >= Millis::seconds(4)));
        assert!(pulse.minutes(ONE, at(89 + 60)).is_empty(), "an hour later nothing of it is recent");
        assert!(pulse.minutes(AccountNo(3), at(0)).is_empty());
    }

    #[test]
    fn the_accounts_that_are_followed_are_bounded() {
        let mut pulse = Pulse::default();
        let at = Timestamp::from_millis(1_800_000_000_000);
        for account in 0..20_000 {
            pulse.accepted(AccountNo(account), at, 1);
        }
        assert_eq!(pulse.accounts.len(), MAX_ACCOUNTS);
        pulse.accepted(AccountNo(19_999), at + Millis::hours(2), 1);
        assert_eq!(pulse.accounts.len(), 1, "those that do nothing any more make room");
    }
}
