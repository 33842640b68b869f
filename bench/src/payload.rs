//! The payload of all measurements: 512 bytes of JSON that carry when they were sent and which one they are, at fixed
//! places. The server sends a payload byte for byte, so a receiver reads them there without parsing.

/// The length of every payload.
pub(crate) const LENGTH: usize = 512;
const TIME: std::ops::Range<usize> = 6..26;
const NUMBER: std::ops::Range<usize> = 33..45;

/// Makes payloads by changing one in place.
pub(crate) struct Payload([u8; LENGTH]);

impl Payload {
    pub(crate) fn new() -> Self {
        let mut bytes = [b'.'; LENGTH];
        let front = format!(r#"{{"t":"{:020}","n":"{:012}","pad":""#, 0, 0);
        bytes[..front.len()].copy_from_slice(front.as_bytes());
        bytes[LENGTH - 2..].copy_from_slice(b"\"}");
        Self(bytes)
    }

    /// The payload with this number, sent at this time of the shared clock. Time 0: its latency is of no interest.
    pub(crate) fn with(&mut self, number: u64, sent_at: u64) -> &[u8; LENGTH] {
        write(&mut self.0[TIME], sent_at);
        write(&mut self.0[NUMBER], number);
        &self.0
    }
}

/// The number and the time of sending that a payload carries.
pub(crate) fn parse(bytes: &[u8]) -> Option<(u64, u64)> {
    (bytes.len() == LENGTH).then(|| (read(&bytes[NUMBER]), read(&bytes[TIME])))
}

fn write(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789"[usize::try_from(number % 10).unwrap_or(0)];
        number /= 10;
    }
}

fn read(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_of_the_right_length_and_tells_what_was_put_in() {
        let mut payload = Payload::new();
        let bytes = payload.with(1_234, 98_765_432_109_876);
        assert_eq!(parse(bytes), Some((1_234, 98_765_432_109_876)));
        let json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        assert_eq!(json["n"], "000000001234");
        assert_eq!(parse(b"{}"), None);
    }
}
