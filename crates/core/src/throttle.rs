//! Their 429: the whole destination waits, then one probe goes first.
//!
//! What counts is the *episode*, not the answer: five requests in flight that are all told 429 are one episode. Every
//! attempt carries the generation in which it started; answers from an older generation neither escalate nor shorten.

use crate::lane::bytes::{Reader, Writer};
use crate::time::{Millis, Timestamp};

/// How long the destination is left alone where it does not say itself, by the number of episodes in a row.
pub const LADDER: [Millis; 5] =
    [Millis::seconds(60), Millis::minutes(5), Millis::minutes(15), Millis::hours(1), Millis::hours(6)];

/// Whether a destination has told us to slow down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Throttle {
    phase: Phase,
    episodes: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Clear,
    Shut {
        since: Timestamp,
        until: Timestamp,
        probe: Probe,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Due,
    Out,
}

/// What the throttle says about a start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleGate {
    /// Nothing.
    Open,
    /// Only as the one probe.
    ForProbe,
    /// Not before `until`.
    ShutUntil(Timestamp),
    /// The probe is out; its answer decides.
    AwaitsProbe,
}

impl Throttle {
    /// May an attempt start at `now`?
    pub fn gate(&self, now: Timestamp) -> ThrottleGate {
        match self.phase {
            Phase::Clear => ThrottleGate::Open,
            Phase::Shut { until, .. } if now < until => ThrottleGate::ShutUntil(until),
            Phase::Shut { probe: Probe::Due, .. } => ThrottleGate::ForProbe,
            Phase::Shut { probe: Probe::Out, .. } => ThrottleGate::AwaitsProbe,
        }
    }

    /// From when to when the destination is left alone, while it is.
    pub const fn shut(&self) -> Option<(Timestamp, Timestamp)> {
        match self.phase {
            Phase::Clear => None,
            Phase::Shut { since, until, .. } => Some((since, until)),
        }
    }
    /// Episodes in a row, without a success since the first.
    pub const fn episodes(&self) -> u32 {
        self.episodes
    }
    /// The generation that an attempt starting now belongs to.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The probe has started.
    pub const fn probe_started(&mut self) {
        if let Phase::Shut { probe, .. } = &mut self.phase {
            *probe = Probe::Out;
        }
    }

    /// An attempt of `generation` ended in some other way than 429 or success. If it was the probe, the wait is over:
    /// whatever is wrong there now, it is not our pace. The count stays.
    pub const fn ended_otherwise(&mut self, generation: u32) {
        if generation == self.generation {
            self.phase = Phase::Clear;
        }
    }

    /// An attempt of `generation` was cut off by us. If it was the probe, it has told nothing, and another may go.
    pub const fn cut_off(&mut self, generation: u32) {
        if generation == self.generation {
            self.forget_probe();
        }
    }

    const fn forget_probe(&mut self) {
        if let Phase::Shut { probe, .. } = &mut self.phase {
            *probe = Probe::Due;
        }
    }

    /// The wall clock was set by `by`: what is left of the wait stays the same.
    pub fn shift(&mut self, by: Millis) {
        if let Phase::Shut { since, until, .. } = &mut self.phase {
            (*since, *until) = (*since + by, *until + by);
        }
    }

    /// The process is a new one: no attempt of the last one comes back, the probe included.
    pub const fn restarted(&mut self) {
        self.generation = 0;
        self.forget_probe();
    }

    /// A 429 came back at `now` for an attempt of `generation`. `true` if a new episode has begun.
    pub fn rate_limited(&mut self, now: Timestamp, generation: u32, retry_after: Option<Millis>) -> bool {
        if generation == self.generation {
            self.episodes = self.episodes.saturating_add(1);
            let rung = LADDER.len().min(usize::try_from(self.episodes).unwrap_or(usize::MAX)) - 1;
            let until = now + retry_after.unwrap_or(LADDER[rung]);
            self.phase = Phase::Shut { since: now, until, probe: Probe::Due };
            self.generation = self.generation.wrapping_add(1);
            return true;
        }
        if let Some(wait) = retry_after {
            let asked = now + wait;
            match &mut self.phase {
                Phase::Shut { until, .. } => *until = asked.max(*until),
                // The throttle it belongs to is over, but the word still holds: wait, without counting an episode.
                Phase::Clear => {
                    self.phase = Phase::Shut { since: now, until: asked, probe: Probe::Due };
                    self.generation = self.generation.wrapping_add(1);
                }
            }
        }
        false
    }

    /// A success of an attempt of `generation`: if it started after the throttle, the destination is well again.
    pub const fn succeeded(&mut self, generation: u32) {
        if generation == self.generation {
            self.phase = Phase::Clear;
            self.episodes = 0;
        }
    }

    /// A person says: try now. The wait is over, and one probe goes first; attempts that started before say nothing of it.
    pub const fn retry_now(&mut self, now: Timestamp) {
        if let Phase::Shut { until, probe, .. } = &mut self.phase {
            *until = now;
            *probe = Probe::Due;
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// For the store: the wait and the count. The probe and the generation belong to the process.
    pub(crate) fn write(&self, out: &mut Writer) {
        out.option(self.shut(), |out, (since, until)| {
            out.time(since);
            out.time(until);
        });
        out.number(self.episodes.into());
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let shut = from.option(|from| Some((from.time()?, from.time()?)))?;
        let phase =
            shut.map_or(Phase::Clear, |(since, until)| Phase::Shut { since, until, probe: Probe::Due });
        Some(Self { phase, episodes: from.number_u32()?, generation: 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn the_ladder_is_climbed_by_episodes_and_left_by_a_success() {
        let mut throttle = Throttle::default();
        let mut now = at(0);
        for wait in [60, 300, 900, 3_600, 21_600, 21_600] {
            assert!(throttle.rate_limited(now, throttle.generation(), None));
            let until = now + Millis::seconds(wait);
            assert_eq!(throttle.gate(now), ThrottleGate::ShutUntil(until));
            assert_eq!(throttle.gate(until), ThrottleGate::ForProbe);
            throttle.probe_started();
            assert_eq!(throttle.gate(until), ThrottleGate::AwaitsProbe);
            now = until;
        }
        throttle.succeeded(throttle.generation());
        assert_eq!((throttle.gate(now), throttle.episodes()), (ThrottleGate::Open, 0));
    }

    #[test]
    fn one_incident_is_one_episode() {
        let mut throttle = Throttle::default();
        let before = throttle.generation();
        throttle.rate_limited(at(0), before, Some(Millis::seconds(100)));
        for late in 1..5 {
            assert!(!throttle.rate_limited(at(late), before, None));
        }
        assert!(
            !throttle.rate_limited(at(5), before, Some(Millis::seconds(1))),
            "a shorter word does not shorten"
        );
        assert_eq!(throttle.gate(at(5)), ThrottleGate::ShutUntil(at(100)));
        throttle.rate_limited(at(6), before, Some(Millis::seconds(200)));
        assert_eq!(throttle.gate(at(6)), ThrottleGate::ShutUntil(at(206)), "a longer one lengthens");
        throttle.succeeded(before);
        assert_eq!(throttle.episodes(), 1, "a success that started before says nothing");
    }

    #[test]
    fn a_probe_that_fails_otherwise_ends_the_wait_but_not_the_count() {
        let mut throttle = Throttle::default();
        throttle.rate_limited(at(0), 0, None);
        throttle.probe_started();
        throttle.cut_off(0);
        assert_ne!(
            throttle.gate(at(60)),
            ThrottleGate::ForProbe,
            "one from before the throttle is not the probe"
        );
        throttle.cut_off(throttle.generation());
        assert_eq!(throttle.gate(at(60)), ThrottleGate::ForProbe, "one that we cut off goes again");
        throttle.probe_started();
        throttle.ended_otherwise(throttle.generation());
        assert_eq!((throttle.gate(at(60)), throttle.episodes()), (ThrottleGate::Open, 1));
    }

    #[test]
    fn a_person_sends_a_probe_at_once_and_only_its_answer_counts() {
        let mut throttle = Throttle::default();
        throttle.retry_now(at(0));
        assert_eq!(
            (throttle.gate(at(0)), throttle.generation()),
            (ThrottleGate::Open, 0),
            "nothing to clear"
        );
        throttle.rate_limited(at(0), 0, Some(Millis::seconds(600)));
        let before = throttle.generation();
        throttle.probe_started();
        throttle.retry_now(at(5));
        assert_eq!(throttle.gate(at(5)), ThrottleGate::ForProbe);
        throttle.probe_started();
        throttle.succeeded(before);
        assert_eq!(throttle.gate(at(5)), ThrottleGate::AwaitsProbe, "the answer of an earlier one");
        throttle.succeeded(throttle.generation());
        assert_eq!((throttle.gate(at(5)), throttle.episodes()), (ThrottleGate::Open, 0));
    }

    proptest! {
        #[test]
        fn retry_after_never_sends_early(answers in prop::collection::vec((0_i64..100, any::<bool>(), prop::option::of(1_i64..86_401)), 1..30)) {
            let mut throttle = Throttle::default();
            let (mut now, mut asked, mut older) = (at(0), at(0), 0);
            for (pass, stale, wait) in answers {
                now = now + Millis::seconds(pass);
                if stale { throttle.rate_limited(now, older, wait.map(Millis::seconds)); }
                else if matches!(throttle.gate(now), ThrottleGate::Open | ThrottleGate::ForProbe) {
                    older = throttle.generation();
                    throttle.rate_limited(now, older, wait.map(Millis::seconds));
                } else { continue }
                if let Some(wait) = wait { asked = asked.max(now + Millis::seconds(wait)); }
                if now < asked { prop_assert_eq!(throttle.gate(asked - Millis::new(1)).is_shut(), true); }
            }
        }
    }

    impl ThrottleGate {
        fn is_shut(self) -> bool {
            matches!(self, Self::ShutUntil(_))
        }
    }
}
