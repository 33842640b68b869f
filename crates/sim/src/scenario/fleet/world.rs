//! The fleet: 200 destinations of six kinds, their traffic, and what goes wrong with them in sixty days.
//!
//! Everything but the answering times is drawn from the seed before the run begins, so both runs of a seed meet the same
//! world. The numbers were calibrated with the seeds 1 to 3; `docs/scenarios.md` says how.

use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_core::timeout::TimeoutMode;

use crate::chance::Chance;
use crate::run::{Commit, Destination, Faults, Setup, Storage};
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Model, Trouble, TroubleKind};

/// When it begins: 2026-05-01.
pub(super) const START: Timestamp = Timestamp::from_millis(1_777_593_600_000);
/// More than the fleet ever uses, so that destinations meet each other's troubles nowhere but in the figures.
const SLOTS: u32 = 2_000;
const ACCOUNTS: u32 = 10;
/// Keeps the draws of the world apart from those of the run.
const WORLD_LABEL: u64 = 0x00F1_EE70;

/// Events that a job publishes at a time, and the mean time between two of them.
const BATCH: u32 = 6;
const SPACING: Millis = Millis::new(250);
/// Of the requests to a destination that is well, so many are never answered.
const LOST_SHARE: (f64, f64) = (0.001, 0.002);

/// Mean time from the end of one trouble to the start of the next.
const TROUBLE_EVERY: Millis = Millis::hours(60);
/// How long they last, in minutes, least and most.
const OUTAGE_MINUTES: (f64, f64) = (5.0, 25.0);
const SLOW_PHASE_MINUTES: (f64, f64) = (60.0, 420.0);
/// Of all troubles, so many are slow phases; of all outages, so many hang, and so many are refused.
const SLOW_PHASES: f64 = 0.1;
const HANGING: f64 = 0.94;
const REFUSING: f64 = 0.03;

/// What kind of destination it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A service of one's own: around 100 ms.
    Internal,
    /// Somebody's web application: 200 to 800 ms.
    Ordinary,
    /// Quick, but for the few percent that touch a slow system behind it.
    TwoPaths,
    /// Quick, but for five in a thousand that take seconds: too few for the percentile to see.
    RarePath,
    /// Works before it answers: around 7 s, with a tail beyond 10 s.
    Partner,
    /// Ordinary until some day of the run's second half, then twenty times as slow for good: around 9 s.
    SlowsForGood,
}

impl Kind {
    /// The fleet, by number of destinations.
    const FLEET: [(Self, u32); 6] = [
        (Self::Internal, 94),
        (Self::Ordinary, 68),
        (Self::TwoPaths, 16),
        (Self::RarePath, 10),
        (Self::Partner, 8),
        (Self::SlowsForGood, 4),
    ];

    /// The one at `rank` among those of its kind, from 0 for the fastest to 1.
    fn latency(self, rank: f64, chance: &mut Chance) -> Latency {
        let log_normal = |medians, sigma| Latency::LogNormal { median_ms: spread(medians, rank), sigma };
        match self {
            Self::Internal => log_normal((50.0, 200.0), chance.between(0.3, 0.6)),
            Self::Ordinary => log_normal((200.0, 800.0), chance.between(0.3, 0.5)),
            Self::TwoPaths => Latency::TwoPaths {
                fast_ms: spread((100.0, 400.0), rank),
                slow_ms: spread((800.0, 2_500.0), chance.unit()),
                slow_share: chance.between(0.02, 0.1),
                sigma: 0.3,
            },
            Self::RarePath => Latency::TwoPaths {
                fast_ms: spread((100.0, 400.0), rank),
                slow_ms: spread((3_000.0, 7_000.0), chance.unit()),
                slow_share: 0.005,
                sigma: 0.3,
            },
            Self::Partner => log_normal((6_000.0, 8_000.0), 0.33),
            Self::SlowsForGood => log_normal((400.0, 500.0), 0.25),
        }
    }

    /// Events a day.
    fn traffic(self, chance: &mut Chance) -> f64 {
        match self {
            Self::Partner => 550.0,
            Self::SlowsForGood => 300.0,
            _ => spread((150.0, 600.0), chance.unit()),
        }
    }

    /// Owners let through what the destination's speed asks for: a slow one needs more requests at a time.
    fn concurrency(self) -> u64 {
        match self {
            Self::Internal | Self::Ordinary | Self::TwoPaths | Self::RarePath => 2,
            Self::Partner | Self::SlowsForGood => 8,
        }
    }

    /// How much slower a slow phase makes it, in percent of the usual time.
    fn slow_factor(self, chance: &mut Chance) -> u32 {
        let (least, most) = match self {
            Self::Partner => (120.0, 160.0),
            _ => (200.0, 500.0),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
        let percent = spread((least, most), chance.unit()) as u32;
        percent
    }
}

/// One destination of the fleet.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) kind: Kind,
    model: Model,
    events_a_day: f64,
}

impl Member {
    fn draw(kind: Kind, rank: f64, days: i64, chance: &mut Chance) -> Self {
        let latency = kind.latency(rank, chance);
        let lost = chance.between(LOST_SHARE.0, LOST_SHARE.1);
        let events_a_day = kind.traffic(chance);
        let troubles = troubles(kind, rank, days, chance);
        Self { kind, model: Model::healthy(latency).losing(lost).troubled(troubles), events_a_day }
    }

    /// Its outages, in order of time.
    pub(super) fn outages(&self) -> impl Iterator<Item = &Trouble> {
        self.model.troubles.iter().filter(|trouble| !matches!(trouble.kind, TroubleKind::Slow { .. }))
    }

    /// Since when it is slow for good, if it ever is.
    pub(super) fn slow_from(&self) -> Option<Timestamp> {
        let last = self.model.troubles.last().filter(|_| self.kind == Kind::SlowsForGood)?;
        Some(last.from)
    }
}

/// All destinations, for a run of so many days.
pub(super) fn draw(seed: u64, days: i64) -> Vec<Member> {
    let mut chance = Chance::new(seed).fork(WORLD_LABEL);
    let ranks = |count: u32| (0..count).map(move |place| (f64::from(place) + 0.5) / f64::from(count));
    let kinds = Kind::FLEET.iter().flat_map(|(kind, count)| ranks(*count).map(|rank| (*kind, rank)));
    let numbered = (1_u64..).zip(kinds);
    numbered.map(|(label, (kind, rank))| Member::draw(kind, rank, days, &mut chance.fork(label))).collect()
}

/// The world that both runs of a seed meet; only the timeout differs.
pub(super) fn setup(seed: u64, fleet: &[Member], timeout: TimeoutMode, days: i64) -> Setup {
    let destination = |(number, member): (u32, &Member)| Destination {
        name: format!("{:?}-{number}", member.kind),
        account: number % ACCOUNTS,
        policy: Policy {
            timeout,
            max_concurrency: Concurrency::new(member.kind.concurrency()).expect("in range"),
            ..Policy::default()
        },
        model: member.model.clone(),
    };
    let source = |(destination, member): (usize, &Member)| Source {
        destination,
        template: Template::new("order.created"),
        arrivals: arrivals(member.events_a_day, days),
    };
    Setup {
        seed,
        start: START,
        slots: SLOTS,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: (0..).zip(fleet).map(destination).collect(),
        sources: fleet.iter().enumerate().map(source).collect(),
        faults: Faults::default(),
    }
}

fn arrivals(events_a_day: f64, days: i64) -> Arrivals {
    #[expect(clippy::cast_possible_truncation, reason = "a day has 86,400,000 ms")]
    let cycle = (f64::from(BATCH) * 86_400_000.0 / events_a_day) as i64;
    let every = Millis::new(cycle) - SPACING.scaled(i64::from(BATCH) - 1, 1);
    Arrivals::Batches { from: START, every, size: BATCH, spacing: SPACING, to: START + Millis::days(days) }
}

/// Outages and slow phases by chance, one after the other; at the end, for some, a slowness that stays.
fn troubles(kind: Kind, rank: f64, days: i64, chance: &mut Chance) -> Vec<Trouble> {
    let end = START + Millis::days(days);
    let slow_from = (kind == Kind::SlowsForGood).then(|| slow_for_good_from(rank, days));
    let until = slow_from.unwrap_or(end);
    let mut troubles = Vec::new();
    let mut at = START;
    loop {
        let from = at + exponential(TROUBLE_EVERY, chance);
        let (kind, lasting) = if chance.happens(SLOW_PHASES) {
            (TroubleKind::Slow { factor: kind.slow_factor(chance) }, SLOW_PHASE_MINUTES)
        } else {
            (outage(chance), OUTAGE_MINUTES)
        };
        let to = from + minutes(lasting, chance);
        if to >= until {
            break;
        }
        troubles.push(Trouble { from, to, kind });
        at = to;
    }
    let for_good = |from| Trouble { from, to: Timestamp::MAX, kind: TroubleKind::Slow { factor: 2_000 } };
    troubles.extend(slow_from.map(for_good));
    troubles
}

/// One after the other in the first half of the measured time.
fn slow_for_good_from(rank: f64, days: i64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "a few hundred")]
    let permille = (500.0 + 250.0 * rank) as i64;
    START + Millis::days(days).scaled(permille, 1_000)
}

fn outage(chance: &mut Chance) -> TroubleKind {
    let which = chance.unit();
    if which < HANGING {
        TroubleKind::Hangs
    } else if which < HANGING + REFUSING {
        TroubleKind::Refuses
    } else {
        TroubleKind::Errors { status: 500 }
    }
}

/// Any length between the two.
fn minutes((least, most): (f64, f64), chance: &mut Chance) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "a few hours")]
    let ms = (60_000.0 * chance.between(least, most)) as i64;
    Millis::new(ms)
}

/// From `least` at 0 to `most` at 1, by equal factors.
fn spread((least, most): (f64, f64), rank: f64) -> f64 {
    least * (most / least).powf(rank)
}

fn exponential(mean: Millis, chance: &mut Chance) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let ms = chance.exponential(mean.get() as f64) as i64;
    Millis::new(ms.max(1))
}
