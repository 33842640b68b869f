//! Chance from a seed (SplitMix64).

/// A source of numbers that is the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Whether one chance in so many came.
    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Any of these; none of none.
    pub(crate) fn any<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let bound = u64::try_from(of.len()).ok().filter(|bound| *bound > 0)?;
        of.get(usize::try_from(self.below(bound)).ok()?)
    }

    /// Dice for somebody else, that roll on their own.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.below(u64::MAX))
    }
}
