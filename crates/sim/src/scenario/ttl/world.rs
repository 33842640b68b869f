//! A hundred destinations over three days: outages, most of them short; quiet hours at a third of them.

use std::sync::Arc;

use tidegate_core::policy::{PermanentStatuses, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::retry::RetryPolicy;
use tidegate_core::settle::Terms;
use tidegate_core::time::{Millis, Timestamp};

use crate::chance::Chance;
use crate::run::{Commit, Destination, Faults, Setup, Storage};
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Model, Trouble, TroubleKind};

/// Destinations.
pub(super) const DESTINATIONS: usize = 100;
/// Every third has quiet hours, in which only one-time passwords go.
const QUIET_EVERY: usize = 3;
/// Publishers are at work for so long.
pub(super) const LASTS: Millis = Millis::days(3);
/// A status that half of the destinations list as permanent.
pub(super) const PERMANENT: u16 = 422;

/// What is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Otp,
    Payment,
    PriceAlert,
    Durable,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Otp, Self::Payment, Self::PriceAlert, Self::Durable];

    pub(super) const fn event_type(self) -> &'static str {
        match self {
            Self::Otp => "login.otp",
            Self::Payment => "payment.authorised",
            Self::PriceAlert => "price.alert",
            Self::Durable => "order.created",
        }
    }
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Otp => "one-time passwords (60 s)",
            Self::Payment => "payment authorisations (7 min)",
            Self::PriceAlert => "price alerts (5 min)",
            Self::Durable => "durable events",
        }
    }
    pub(super) const fn life(self) -> Option<Millis> {
        match self {
            Self::Otp => Some(Millis::seconds(60)),
            Self::Payment => Some(Millis::minutes(7)),
            Self::PriceAlert => Some(Millis::minutes(5)),
            Self::Durable => None,
        }
    }
    pub(super) fn of(event_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.event_type() == event_type)
    }

    /// The life of a one-time password is said by its type, that of the others by each event.
    fn template(self) -> Template {
        let template = Template::new(self.event_type());
        match (self, self.life()) {
            (Self::Otp, life) => {
                Template { terms: Arc::new(Terms { type_ttl: life, ..Terms::default() }), ..template }
            }
            (_, Some(life)) => template.with_ttl(life),
            (_, None) => template,
        }
    }
}

/// How failed deliveries are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retries {
    /// As the life of the event suggests.
    Fitted,
    /// By the default schedule, written at each destination, whatever the life.
    Default,
}

pub(super) fn start() -> Timestamp {
    Timestamp::parse("2026-05-01T00:00:00Z").expect("a valid time")
}

/// The same world and traffic for both kinds of retries.
pub(super) fn setup(seed: u64, retries: Retries) -> Setup {
    let mut chance = Chance::new(seed);
    let destinations = (0..DESTINATIONS).map(|index| destination(index, retries, &mut chance)).collect();
    let source = |destination, kind: Kind| {
        let (from, to) = (start(), start() + LASTS);
        let arrivals = Arrivals::Poisson { from, every: Millis::minutes(10), to };
        Source { destination, template: kind.template(), arrivals }
    };
    let sources = (0..DESTINATIONS).flat_map(|index| Kind::ALL.map(|kind| source(index, kind))).collect();
    Setup {
        seed,
        start: start(),
        slots: 2_000,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations,
        sources,
        faults: Faults::default(),
    }
}

fn destination(index: usize, retries: Retries, chance: &mut Chance) -> Destination {
    let retry = match retries {
        Retries::Fitted => None,
        Retries::Default => Some(Arc::new(RetryPolicy::default())),
    };
    let quiet = if index.is_multiple_of(QUIET_EVERY) { night() } else { QuietHours::none() };
    let permanent = if index.is_multiple_of(2) { vec![PERMANENT] } else { Vec::new() };
    let permanent_statuses = PermanentStatuses::new(permanent).expect("a valid status");
    let latency = Latency::LogNormal { median_ms: chance.between(100.0, 800.0), sigma: 0.4 };
    Destination {
        name: format!("destination {index}"),
        account: u32::try_from(index % 5).expect("less than 5"),
        policy: Policy { retry, quiet, permanent_statuses, ..Policy::default() },
        model: Model::healthy(latency).troubled(troubles(chance)),
    }
}

fn night() -> QuietHours {
    let window = Window::parse(WindowSpec {
        timezone: "Europe/Berlin".into(),
        quiet_start: "22:00".into(),
        quiet_end: "06:30".into(),
        bypass_event_types: vec![Kind::Otp.event_type().into()],
        ..WindowSpec::default()
    });
    QuietHours::new(vec![window.expect("a valid window")]).expect("it opens every day")
}

/// An outage every twenty minutes or so: most last half a minute, some a few minutes, very few hours.
fn troubles(chance: &mut Chance) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut at = start();
    while at < start() + LASTS {
        let from = at + drawn(Millis::minutes(20), chance);
        let mean = match chance.below(1_000) {
            0..700 => Millis::seconds(30),
            700..997 => Millis::minutes(3),
            _ => Millis::hours(2),
        };
        let kind = match chance.below(5) {
            0 => TroubleKind::Hangs,
            1 => TroubleKind::Refuses,
            2 => TroubleKind::Errors { status: 500 },
            3 => TroubleKind::Errors { status: PERMANENT },
            _ => TroubleKind::Unavailable { retry_after: Millis::seconds(20) },
        };
        let to = from + drawn(mean, chance);
        troubles.push(Trouble { from, to, kind });
        at = to;
    }
    troubles
}

fn drawn(mean: Millis, chance: &mut Chance) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let ms = chance.exponential(mean.get() as f64) as i64;
    Millis::new(ms.max(1))
}
