//! Numbers, times and ids as bytes, for what is stored of a lane. Reading gives `None` for bytes that nobody wrote; it
//! never panics, and takes no more memory than the bytes themselves.

use crate::id::DeliveryId;
use crate::time::{Millis, Timestamp};

/// Bytes being written.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(version: u8) -> Self {
        Self(vec![version])
    }
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }
    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(flag.into());
    }
    /// LEB128: small numbers are short.
    pub(crate) fn number(&mut self, mut number: u64) {
        loop {
            let low = u8::try_from(number & 0x7f).expect("seven bits");
            number >>= 7;
            if number == 0 {
                return self.byte(low);
            }
            self.byte(low | 0x80);
        }
    }
    /// The sign in the lowest bit, so that numbers near zero are short either way.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }
    pub(crate) fn float(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }
    pub(crate) fn millis(&mut self, span: Millis) {
        self.signed(span.get());
    }
    pub(crate) fn time(&mut self, at: Timestamp) {
        self.signed(at.as_millis());
    }
    pub(crate) fn id(&mut self, id: DeliveryId) {
        self.0.extend(id.to_bits().to_le_bytes());
    }
    pub(crate) fn block(&mut self, bytes: &[u8]) {
        self.number(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.extend(bytes);
    }
    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Bytes being read.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// What follows the version, if it is this one.
    pub(crate) fn new(bytes: &'a [u8], version: u8) -> Option<Self> {
        bytes.split_first().filter(|(first, _)| **first == version).map(|(_, rest)| Self(rest))
    }
    /// Everything was read.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
    pub(crate) fn number_u32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
    /// A number that can be reckoned with: neither infinite nor none at all.
    pub(crate) fn float(&mut self) -> Option<f64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(f64::from_le_bytes(bytes)).filter(|number| number.is_finite())
    }
    pub(crate) fn millis(&mut self) -> Option<Millis> {
        self.signed().map(Millis::new)
    }
    pub(crate) fn time(&mut self) -> Option<Timestamp> {
        let ms = self.signed()?;
        Some(Timestamp::from_millis(ms)).filter(|at| at.as_millis() == ms)
    }
    pub(crate) fn id(&mut self) -> Option<DeliveryId> {
        let bytes = self.take(16)?.try_into().ok()?;
        Some(DeliveryId::from_bits(u128::from_le_bytes(bytes)))
    }
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }
    /// `Some(None)`: it was written that there is none.
    #[expect(clippy::option_option, reason = "the outer one says whether the bytes can be read")]
    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number: u64, signed: i64, text: Vec<u8>) {
            let mut writer = Writer::new(7);
            writer.number(number);
            writer.signed(signed);
            writer.option(Some(&text), |writer, text| writer.block(text));
            writer.option(None::<u8>, Writer::byte);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes, 7).unwrap();
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.signed(), Some(signed));
            prop_assert_eq!(reader.option(Reader::block), Some(Some(&text[..])));
            prop_assert_eq!(reader.option(Reader::byte), Some(None));
            prop_assert_eq!(reader.end(), Some(()));
        }
    }

    #[test]
    fn what_was_not_written_is_not_read() {
        assert!(Reader::new(&[], 1).is_none());
        assert!(Reader::new(&[2, 0], 1).is_none());
        let too_long = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Reader::new(&too_long, 1).unwrap().number(), None);
        assert_eq!(Reader::new(&[1, 0xff, 0xff, 3], 1).unwrap().block(), None, "longer than what is there");
    }
}
