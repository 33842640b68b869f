//! Chance, handed in by the caller like time: a rule that needs some gets one [`Draw`] as an argument.

/// 64 uniform random bits, for one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(pub u64);

impl Draw {
    /// A whole number in `0..=most`, each as likely as the others (to within 2⁻⁶⁴).
    pub fn up_to(self, most: u64) -> u64 {
        let wide = u128::from(self.0) * (u128::from(most) + 1);
        u64::try_from(wide >> 64).expect("a product of two 64-bit numbers, shifted down by 64")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_reaches_both_ends_and_nothing_beyond() {
        assert_eq!(Draw(0).up_to(10), 0);
        assert_eq!(Draw(u64::MAX).up_to(10), 10);
        assert_eq!(Draw(u64::MAX).up_to(u64::MAX), u64::MAX);
        assert_eq!(Draw(u64::MAX).up_to(0), 0);
    }
}
