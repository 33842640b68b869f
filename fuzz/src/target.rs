//! The targets, one file each. A panic is a finding: of the product's, or of a law that does not hold.

pub mod address;
pub mod configuration;
pub mod cursor;
pub mod headers;
pub mod publish;
pub mod rate_limit;
pub mod retry_after;
pub mod scenario;
pub mod schedule;
pub mod signature;

/// Cuts the input into its lines; the last one is whatever is left. Targets that take several values have one on each line,
/// so that a corpus can be read and written by hand.
fn lines<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |byte| *byte == b'\n');
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
