//! A retry plan as text: how it lies beside its delivery in the store.
//!
//! `p:5;30000,120000;proportional;max=5` is a policy of five attempts with these delays in milliseconds; `short` and
//! `minutes` are the plans fitted to a short life. `max` is what the delivery may use in all, where there is an end.

use std::sync::Arc;

use super::{Jitter, Pace, RetryPlan, RetryPolicy};
use crate::time::Millis;

const SHORT: &str = "short";
const MINUTES: &str = "minutes";

impl RetryPlan {
    /// The plan as text, for the store.
    pub fn to_text(&self) -> String {
        let pace = match &self.pace {
            Pace::EverySecondCounts => SHORT.to_owned(),
            Pace::Minutes => MINUTES.to_owned(),
            Pace::Policy(policy) => {
                let delays: Vec<String> = policy.delays.iter().map(|delay| delay.get().to_string()).collect();
                format!("p:{};{};{}", policy.max_attempts, delays.join(","), policy.jitter.word())
            }
        };
        self.max_attempts.map_or(pace.clone(), |max| format!("{pace};max={max}"))
    }

    /// Reads what [`to_text`](Self::to_text) wrote, and nothing else.
    pub fn from_text(text: &str) -> Option<Self> {
        let (pace, max_attempts) = match text.rsplit_once(";max=") {
            Some((pace, max)) => (pace, Some(max.parse().ok()?)),
            None => (text, None),
        };
        let pace = match pace {
            SHORT => Pace::EverySecondCounts,
            MINUTES => Pace::Minutes,
            policy => Pace::Policy(Arc::new(read_policy(policy)?)),
        };
        let plan = Self { pace, max_attempts };
        // Numbers can be written in more ways than one; the store knows one.
        (plan.to_text() == text).then_some(plan)
    }
}

fn read_policy(text: &str) -> Option<RetryPolicy> {
    let mut parts = text.strip_prefix("p:")?.split(';');
    let (max, delays, jitter) = (parts.next()?, parts.next()?, parts.next()?);
    let delays: Option<Vec<Millis>> =
        delays.split(',').map(|delay| delay.parse().ok().map(Millis::new)).collect();
    let policy = RetryPolicy::new(max.parse().ok()?, delays?, Jitter::parse(jitter).ok()?).ok()?;
    parts.next().is_none().then_some(policy)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retry::RetrySources;

    #[test]
    fn plans_have_one_spelling() {
        assert_eq!(RetryPlan::default().to_text(), "p:5;30000,120000,600000,3600000;proportional;max=5");
        for ttl in [60, 600] {
            let sources = RetrySources { ttl: Some(Millis::seconds(ttl)), ..RetrySources::default() };
            let plan = RetryPlan::choose(sources);
            assert_eq!(RetryPlan::from_text(&plan.to_text()), Some(plan));
            let capped = RetryPlan::choose(RetrySources { event_type_max_attempts: Some(3), ..sources });
            assert_eq!(RetryPlan::from_text(&capped.to_text()), Some(capped));
        }
        for wrong in [
            "",
            "p",
            "long",
            "short;max=",
            "short;max=03",
            "p:5;30000;proportional;more;max=5",
            "p:+5;30000;proportional;max=5",
            "p:5;;proportional;max=5",
            "p:5;1;proportional;max=5",
            "p:5;30000;sideways;max=5",
        ] {
            assert_eq!(RetryPlan::from_text(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_plan_survives_its_text(
            max in 1_u64..=50,
            delays in prop::collection::vec(1_000_i64..=604_800_000, 1..=50),
            jitter in 0_usize..3,
            cap in prop::option::of(1_u32..100),
        ) {
            let jitter = [Jitter::None, Jitter::Proportional, Jitter::Full][jitter];
            let delays = delays.into_iter().map(Millis::new).collect();
            let policy = Arc::new(RetryPolicy::new(max, delays, jitter).unwrap());
            let sources = RetrySources {
                event_type: Some(&policy), event_type_max_attempts: cap, ..RetrySources::default()
            };
            let plan = RetryPlan::choose(sources);
            prop_assert_eq!(RetryPlan::from_text(&plan.to_text()), Some(plan));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(p:|short|minutes)?[0-9;,=a-z+ ]{0,40}") {
            if let Some(plan) = RetryPlan::from_text(&text) {
                prop_assert_eq!(plan.to_text(), text);
            }
        }
    }
}
