//! How long a destination takes when it is well.

use rand_distr::{Distribution, StandardNormal};
use tidegate_core::time::Millis;

use crate::chance::Chance;

/// A distribution of answering times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Latency {
    /// Always the same.
    Constant {
        /// This long, in milliseconds.
        ms: f64,
    },
    /// The usual shape of a web service: half of the answers come within `median_ms`, a few take much longer.
    LogNormal {
        /// In milliseconds.
        median_ms: f64,
        /// How wide: 0.3 is steady, 1 is wild.
        sigma: f64,
    },
    /// Two ways through the destination: a share of the requests takes the slow one.
    TwoPaths {
        /// Median of the fast way, in milliseconds.
        fast_ms: f64,
        /// Median of the slow way, in milliseconds.
        slow_ms: f64,
        /// Share of the slow way.
        slow_share: f64,
        /// How wide both are.
        sigma: f64,
    },
}

impl Latency {
    /// One answering time, at least a millisecond.
    pub fn sample(&self, chance: &mut Chance) -> Millis {
        let ms = match *self {
            Self::Constant { ms } => ms,
            Self::LogNormal { median_ms, sigma } => log_normal(median_ms, sigma, chance),
            Self::TwoPaths { fast_ms, slow_ms, slow_share, sigma } => {
                let median = if chance.happens(slow_share) { slow_ms } else { fast_ms };
                log_normal(median, sigma, chance)
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "clamped to an hour")]
        let whole = ms.clamp(1.0, 3_600_000.0) as i64;
        Millis::new(whole)
    }
}

fn log_normal(median: f64, sigma: f64, chance: &mut Chance) -> f64 {
    let normal: f64 = StandardNormal.sample(chance.rng());
    median * (sigma * normal).exp()
}
