//! A node's clocks: a monotonic one that runs a little fast or slow, and a wall clock that is wrong until the database's is
//! known. What is known of that, and how well, is the engine's [`Bounds`].

use tidegate_core::time::{Mono, Now, Timestamp};
use tidegate_engine::clock::Bounds;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// When the process began.
    pub(super) booted: i64,
    /// By how many parts of a million it runs fast.
    pub(super) ppm: i64,
    /// By how much the machine's own wall clock is wrong, in microseconds.
    pub(super) skew: i64,
    /// Where the database's clock was when the monotonic one began.
    bounds: Option<Bounds>,
}

impl Clock {
    pub(super) const fn new(booted: i64, ppm: i64, skew: i64) -> Self {
        Self { booted, ppm, skew, bounds: None }
    }

    pub(super) const fn elapsed(&self, us: i64) -> i64 {
        let passed = us - self.booted;
        passed + passed * self.ppm / 1_000_000
    }

    pub(super) fn now(&self, us: i64, true_micros: i64) -> Now {
        let elapsed = self.elapsed(us);
        let wall = self.bounds.map_or(true_micros + self.skew, |bounds| bounds.middle() + elapsed);
        Now { wall: Timestamp::from_millis(wall.div_euclid(1_000)), mono: Mono::from_millis(elapsed / 1_000) }
    }

    /// The database's clock stood at `micros` at some moment between the two.
    pub(super) fn follow(&mut self, micros: i64, sent: i64, received: i64) {
        let seen = Bounds::seen(micros, sent, received);
        self.bounds = Some(self.bounds.map_or(seen, |known| known.narrowed(seen)));
    }
    pub(super) const fn is_known(&self) -> bool {
        self.bounds.is_some()
    }
    /// The earliest and the latest time that it may be.
    pub(super) fn between(&self, us: i64, true_micros: i64) -> (Timestamp, Timestamp) {
        let own = self.now(us, true_micros).wall;
        self.bounds.map_or((own, own), |bounds| bounds.between(self.elapsed(us)))
    }

    /// When the monotonic clock shows this.
    pub(super) fn at_mono(&self, mono: Mono) -> i64 {
        self.at_elapsed(mono.as_millis() * 1_000)
    }
    /// When the wall clock shows this, as far as it is known.
    pub(super) fn at_wall(&self, wall: Timestamp) -> i64 {
        self.bounds.map_or(i64::MAX / 4, |bounds| self.at_elapsed(wall.as_millis() * 1_000 - bounds.middle()))
    }
    fn at_elapsed(&self, elapsed: i64) -> i64 {
        self.booted + elapsed - elapsed / 1_000 * self.ppm / 1_000 + 1
    }
}
