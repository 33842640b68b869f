//! The only slow start there is: how many attempts a lane dares to have in flight.

/// Starts at 1, doubles with a success, halves with a failure, and is 1 again after a throttle, an `unavailable` or an
/// open breaker. The destination's `max_concurrency` bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp(u32);

impl Ramp {
    /// As at first.
    pub const START: Self = Self(1);

    /// Attempts that may be in flight, of at most `max`.
    pub fn limit(self, max: u32) -> u32 {
        self.0.min(max)
    }
    /// After a success.
    pub fn raise(&mut self, max: u32) {
        self.0 = self.0.saturating_mul(2).min(max).max(1);
    }
    /// After a failure.
    pub fn lower(&mut self, max: u32) {
        self.0 = (self.0.min(max) / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_halves_and_stays_within_its_bounds() {
        let mut ramp = Ramp::START;
        let mut seen = vec![];
        for success in [true, true, true, true, false, false, false, false, true] {
            match success {
                true => ramp.raise(5),
                false => ramp.lower(5),
            }
            seen.push(ramp.limit(5));
        }
        assert_eq!(seen, [2, 4, 5, 5, 2, 1, 1, 1, 2]);
        ramp.raise(1_000);
        assert_eq!(ramp.limit(3), 3, "a lowered maximum holds at once");
    }
}
