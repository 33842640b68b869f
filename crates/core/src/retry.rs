//! When a failed delivery is tried again, and how often.
//!
//! The plan is chosen once, when the delivery is accepted, and kept with it: a policy edited later does not change
//! what was promised. Delays count from the end of the failed attempt.

mod text;

use std::sync::{Arc, LazyLock};

use crate::draw::Draw;
use crate::invalid::{Invalid, check_range};
use crate::limits;
use crate::time::Millis;

/// How far chance moves a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jitter {
    /// Not at all.
    None,
    /// By up to a fifth either way: never earlier than 80% of the delay, never later than 120%.
    #[default]
    Proportional,
    /// Anywhere between at once and the delay.
    Full,
}

impl Jitter {
    /// The kind that `word` names.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        match word {
            "none" => Ok(Self::None),
            "proportional" => Ok(Self::Proportional),
            "full" => Ok(Self::Full),
            other => Err(Invalid::new("jitter", format_args!("\"{other}\""), "none, proportional or full")),
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Proportional => "proportional",
            Self::Full => "full",
        }
    }

    /// `delay`, moved.
    pub fn apply(self, delay: Millis, draw: Draw) -> Millis {
        let drawn = |most: Millis| Millis::new(draw.up_to(most.get().max(0).unsigned_abs()).cast_signed());
        match self {
            Self::None => delay,
            Self::Proportional => delay - delay.scaled(1, 5) + drawn(delay.scaled(2, 5)),
            Self::Full => drawn(delay),
        }
    }
}

/// A `retry_policy`, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    max_attempts: u32,
    delays: Vec<Millis>,
    jitter: Jitter,
}

impl RetryPolicy {
    /// At most `max_attempts`, with `delays` between them; the last delay repeats where the list is shorter.
    pub fn new(max_attempts: u64, delays: Vec<Millis>, jitter: Jitter) -> Result<Self, Invalid> {
        let field = "delays_seconds";
        let max_attempts = check_range("max_attempts", max_attempts, 1, u64::from(limits::MAX_ATTEMPTS))?;
        if delays.is_empty() || delays.len() > limits::MAX_DELAYS {
            return Err(Invalid::new(
                field,
                format_args!("a list of {}", delays.len()),
                format!("1 to {} delays", limits::MAX_DELAYS),
            ));
        }
        for (index, delay) in delays.iter().enumerate() {
            if *delay < limits::MIN_DELAY || *delay > limits::MAX_DELAY {
                return Err(Invalid::new(
                    "",
                    delay,
                    format!("{} to {}", limits::MIN_DELAY, limits::MAX_DELAY),
                )
                .at(index)
                .under(field));
            }
        }
        Ok(Self { max_attempts: u32::try_from(max_attempts).expect("in range"), delays, jitter })
    }

    /// Attempts that may be used.
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }
    /// The delays between them; the last one repeats.
    pub fn delays(&self) -> &[Millis] {
        &self.delays
    }
    /// How far chance moves them.
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }
    fn delay(&self, used: u32) -> (Millis, Jitter) {
        let index = usize::try_from(used.saturating_sub(1)).unwrap_or(usize::MAX);
        (*self.delays.get(index).or(self.delays.last()).expect("validated: at least one delay"), self.jitter)
    }
}

/// Five attempts: 30 s, 2 min, 10 min and 1 h after the failure before, give or take a fifth.
impl Default for RetryPolicy {
    fn default() -> Self {
        let delays = [30, 120, 600, 3_600].map(Millis::seconds).to_vec();
        Self { max_attempts: 5, delays, jitter: Jitter::Proportional }
    }
}

/// What one delivery was promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPlan {
    pace: Pace,
    max_attempts: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pace {
    Policy(Arc<RetryPolicy>),
    /// A life under 2 minutes: every 15 s, for as long as the next one would start before expiry.
    EverySecondCounts,
    /// A life under 15 minutes: four times 30 s, then every 60 s, likewise.
    Minutes,
}

/// Who may have said how a delivery is to be retried, in the order in which they are heard.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetrySources<'a> {
    /// The event type's policy.
    pub event_type: Option<&'a Arc<RetryPolicy>>,
    /// The event type's `max_attempts`: it holds whoever else says how long to wait between them.
    pub event_type_max_attempts: Option<u32>,
    /// The destination's policy.
    pub destination: Option<&'a Arc<RetryPolicy>>,
    /// The whole life of the event, from receipt to expiry.
    pub ttl: Option<Millis>,
    /// The account's default.
    pub account: Option<&'a Arc<RetryPolicy>>,
}

/// Where nobody says anything: one for all, because each delivery that waits has its plan.
static BUILT_IN: LazyLock<Arc<RetryPolicy>> = LazyLock::new(Arc::default);

impl RetryPlan {
    /// The plan for a delivery: event type, destination, a plan fitted to the TTL, account, built-in.
    pub fn choose(sources: RetrySources<'_>) -> Self {
        let short = sources.ttl.and_then(|ttl| match ttl {
            _ if ttl < Millis::minutes(2) => Some(Pace::EverySecondCounts),
            _ if ttl < Millis::minutes(15) => Some(Pace::Minutes),
            _ => None,
        });
        let policy = |policy: &Arc<RetryPolicy>| Pace::Policy(Arc::clone(policy));
        let pace = (sources.event_type.or(sources.destination).map(policy))
            .or(short)
            .or(sources.account.map(policy))
            .unwrap_or_else(|| policy(&BUILT_IN));
        let own = match &pace {
            Pace::Policy(policy) => Some(policy.max_attempts),
            Pace::EverySecondCounts | Pace::Minutes => None,
        };
        Self { pace, max_attempts: sources.event_type_max_attempts.or(own) }
    }

    /// Attempts that may be used; `None`: as many as start before expiry.
    pub const fn max_attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    /// How long after the end of the `used`-th used attempt the next one may start; `None` if there is none left.
    pub fn delay_after(&self, used: u32, draw: Draw) -> Option<Millis> {
        if self.max_attempts.is_some_and(|max| used >= max) {
            return None;
        }
        let (delay, jitter) = match &self.pace {
            Pace::Policy(policy) => policy.delay(used),
            Pace::EverySecondCounts => (Millis::seconds(15), Jitter::None),
            Pace::Minutes if used <= 4 => (Millis::seconds(30), Jitter::Proportional),
            Pace::Minutes => (Millis::seconds(60), Jitter::Proportional),
        };
        Some(jitter.apply(delay, draw))
    }
}

impl Default for RetryPlan {
    fn default() -> Self {
        Self::choose(RetrySources::default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delays(plan: &RetryPlan) -> Vec<i64> {
        let middle = Draw(u64::MAX / 2);
        (1..9).map_while(|used| plan.delay_after(used, middle)).map(|d| (d.get() + 500) / 1_000).collect()
    }

    #[test]
    fn the_plan_follows_the_whole_life_of_the_event() {
        for (ttl, expected) in [
            (None, &[30, 120, 600, 3_600][..]),
            (Some(60), &[15; 8]),
            (Some(119), &[15; 8]),
            (Some(120), &[30, 30, 30, 30, 60, 60, 60, 60]),
            (Some(899), &[30, 30, 30, 30, 60, 60, 60, 60]),
            (Some(900), &[30, 120, 600, 3_600]),
        ] {
            let plan =
                RetryPlan::choose(RetrySources { ttl: ttl.map(Millis::seconds), ..Default::default() });
            assert_eq!(delays(&plan), expected, "{ttl:?}");
        }
    }

    #[test]
    fn the_nearest_word_counts() {
        let policy =
            |seconds| Arc::new(RetryPolicy::new(3, vec![Millis::seconds(seconds)], Jitter::None).unwrap());
        let (by_type, by_destination, by_account) = (policy(1), policy(2), policy(3));
        let ttl = Some(Millis::seconds(60));
        let mut sources = RetrySources { account: Some(&by_account), ..Default::default() };
        assert_eq!(delays(&RetryPlan::choose(sources)), [3, 3]);
        sources.ttl = ttl;
        assert_eq!(delays(&RetryPlan::choose(sources))[..2], [15, 15]);
        sources.destination = Some(&by_destination);
        assert_eq!(delays(&RetryPlan::choose(sources)), [2, 2]);
        sources.event_type = Some(&by_type);
        assert_eq!(delays(&RetryPlan::choose(sources)), [1, 1]);
        sources.event_type_max_attempts = Some(2);
        assert_eq!(delays(&RetryPlan::choose(sources)), [1]);
        let capped = RetrySources { ttl, event_type_max_attempts: Some(2), ..Default::default() };
        assert_eq!(delays(&RetryPlan::choose(capped)), [15]);
    }

    #[test]
    fn refused_policies_say_what_is_allowed() {
        let second = Millis::seconds(1);
        for (max, delays, expected) in [
            (0, vec![second], "`max_attempts` is 0; allowed: 1 to 50"),
            (51, vec![second], "`max_attempts` is 51; allowed: 1 to 50"),
            (5, vec![], "`delays_seconds` is a list of 0; allowed: 1 to 50 delays"),
            (5, vec![second, Millis::ZERO], "`delays_seconds[1]` is 0 s; allowed: 1 s to 7 days"),
            (5, vec![Millis::MAX], "`delays_seconds[0]` is 9223372036854775807 ms; allowed: 1 s to 7 days"),
        ] {
            assert_eq!(RetryPolicy::new(max, delays, Jitter::None).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn jitter_never_sends_early(delay in 1_000_i64..604_800_001, bits: u64) {
            let (delay, draw) = (Millis::new(delay), Draw(bits));
            prop_assert_eq!(Jitter::None.apply(delay, draw), delay);
            let moved = Jitter::Proportional.apply(delay, draw);
            prop_assert!(moved >= delay.scaled(4, 5) && moved <= delay.scaled(6, 5) + Millis::new(1));
            let moved = Jitter::Full.apply(delay, draw);
            prop_assert!(moved >= Millis::ZERO && moved <= delay);
        }
    }
}
