//! All chance in a simulated world comes from one seed.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tidegate_core::draw::Draw;

/// A seeded source. Parts of the world get a [`fork`](Self::fork) each, so that one more draw here changes nothing there.
#[derive(Clone, Debug)]
pub struct Chance(Pcg64Mcg);

impl Chance {
    /// The source that `seed` stands for.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }
    /// An independent source, named by `label` within this one's seed.
    #[must_use]
    pub fn fork(&mut self, label: u64) -> Self {
        Self::new(self.0.next_u64() ^ label.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
    /// One draw for the rules.
    pub fn draw(&mut self) -> Draw {
        Draw(self.0.next_u64())
    }
    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }
    /// Yes with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
    /// A number in `[least, most)`.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }
    /// A whole number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw().up_to(bound.saturating_sub(1))
    }
    /// A waiting time with this mean, where waiting has no memory.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
    /// The source itself, for distributions of `rand_distr`.
    pub fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }
}
