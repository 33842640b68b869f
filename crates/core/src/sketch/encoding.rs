//! A sketch as bytes, two or three to each bin: as it is stored for one destination and day.
//!
//! After the version, for each bin in rising order: its distance from the one before (less one; the first from zero),
//! then twice the number of answers, plus one if a number of cuts follows. All numbers are LEB128 in their shortest
//! form, so that equal sketches have equal bytes and no other bytes are taken for them.

use super::{Entry, LAST_BIN, Sketch};

const VERSION: u8 = 1;

/// Bytes that are not a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSketch {
    /// There is not even a version.
    #[error("an encoded sketch has at least one byte")]
    Empty,
    /// Written by a newer release, or not a sketch at all.
    #[error("sketch of version {0}; this release reads version {VERSION}")]
    UnknownVersion(u8),
    /// Cut short, or changed since it was written.
    #[error("sketch is damaged before byte {at}")]
    Damaged {
        /// Where reading stopped.
        at: usize,
    },
}

impl Sketch {
    /// The samples as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + 3 * self.entries.len());
        bytes.push(VERSION);
        let mut next = 0;
        for entry in &self.entries {
            write_number(&mut bytes, u64::from(entry.bin - next));
            write_number(&mut bytes, u64::from(entry.completed) << 1 | u64::from(entry.censored > 0));
            if entry.censored > 0 {
                write_number(&mut bytes, u64::from(entry.censored));
            }
            next = entry.bin + 1;
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadSketch> {
        match bytes.first() {
            None => return Err(BadSketch::Empty),
            Some(&VERSION) => {}
            Some(&other) => return Err(BadSketch::UnknownVersion(other)),
        }
        let mut reader = Reader { bytes, at: 1 };
        let mut sketch = Self::new();
        let mut next = 0;
        while reader.at < bytes.len() {
            let entry = reader.entry(next).ok_or(BadSketch::Damaged { at: reader.at })?;
            next = entry.bin + 1;
            sketch.entries.push(entry);
        }
        Ok(sketch)
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next bin, which is at least `least`.
    fn entry(&mut self, least: u16) -> Option<Entry> {
        let bin = u16::try_from(self.number()?).ok()?.checked_add(least).filter(|&bin| bin <= LAST_BIN)?;
        let answers = self.number()?;
        let completed = u32::try_from(answers >> 1).ok()?;
        let censored = if answers & 1 == 1 { u32::try_from(self.number()?).ok()? } else { 0 };
        // An announced number of cuts is never zero, and a bin without samples is never written.
        let sound = (answers & 1 == 1) == (censored > 0) && (completed > 0 || censored > 0);
        sound.then_some(Entry { bin, completed, censored })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        // 33 bits are the longest number there is: five bytes.
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                // A last byte of zero would be a longer form of a shorter number.
                return (byte > 0 || shift == 0).then_some(number);
            }
        }
        None
    }
}
