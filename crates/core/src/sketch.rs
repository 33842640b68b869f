//! How long a destination takes to answer, as a small histogram that can be merged, stored and asked for percentiles.
//!
//! One sketch holds one destination's attempts of one day; a week is the [`merge`](Sketch::merge) of its days. Two
//! things are asked of it that the usual crates (DDSketch, HDR histograms) do not do together. It must know
//! **censoring**: an attempt cut off at its timeout says only that the answer would have taken at least that long, and
//! a percentile that leaves such attempts out, or takes the timeout for the answer, is wrong exactly where it matters.
//! And it must be **sparse**: theirs take kilobytes each, and there may be 100,000 destinations, most of them quiet.
//!
//! Times fall into integer bins: exact below 128 ms, above that 64 bins to each power of two, so that no bin is wider
//! than 1/64 of its lower edge. A percentile is the upper edge of its bin: never less than the sorted samples would
//! give, and at most 1/64 more. Only bins that hold something are kept.
//!
//! What a percentile is used for is left to [`timeout`](crate::timeout).

mod encoding;
#[cfg(test)]
mod tests;

use crate::time::Millis;
pub use encoding::BadSketch;

/// Bins to each power of two. The first that many milliseconds have a bin each.
const PER_OCTAVE: u16 = 64;
/// The bin of the longest time there is.
const LAST_BIN: u16 = 3_711;
/// The whole, where a share is counted in ten-thousandths.
const WHOLE: u32 = 10_000;

/// Counts of attempts by how long they took, or by how long they were waited for in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Sorted by bin; none of them empty.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    bin: u16,
    completed: u32,
    censored: u32,
}

/// Attempts that took about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The shortest time that falls in here.
    pub low: Millis,
    /// The longest time that falls in here.
    pub high: Millis,
    /// Attempts that were answered after such a time.
    pub completed: u32,
    /// Attempts that were cut off after such a time, without an answer.
    pub censored: u32,
}

/// Where a percentile lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// There are no samples.
    Empty,
    /// At this time: the upper edge of its bin.
    At(Millis),
    /// Somewhere among attempts that were cut off, later than any answer that was seen.
    AmongCensored {
        /// The longest that any of them was waited for (the upper edge of its bin).
        beyond: Millis,
    },
}

impl Sketch {
    /// No samples.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// An attempt was answered after `elapsed`. A time below zero counts as none.
    pub fn record(&mut self, elapsed: Millis) {
        self.add(Entry { bin: bin_of(elapsed), completed: 1, censored: 0 });
    }

    /// An attempt was cut off after `waited`: its answer would have taken at least that long.
    pub fn record_censored(&mut self, waited: Millis) {
        self.add(Entry { bin: bin_of(waited), completed: 0, censored: 1 });
    }

    /// Adds all samples of `other`, as if they had been recorded here. Counts end at the limit of their type.
    pub fn merge(&mut self, other: &Self) {
        for &entry in &other.entries {
            self.add(entry);
        }
    }

    /// Forgets all samples and keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All attempts, answered or cut off.
    pub fn samples(&self) -> u64 {
        self.entries.iter().map(|e| u64::from(e.completed) + u64::from(e.censored)).sum()
    }

    /// The attempts that were cut off.
    pub fn censored(&self) -> u64 {
        self.entries.iter().map(|e| u64::from(e.censored)).sum()
    }

    /// The bins that hold something, shortest first.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = Bin> + '_ {
        self.entries.iter().map(|e| Bin {
            low: low_of(e.bin),
            high: high_of(e.bin),
            completed: e.completed,
            censored: e.censored,
        })
    }

    /// The time within which `permyriad` ten-thousandths of all attempts would be answered if all were waited for
    /// (9,900 for the 99th percentile; held within 1 and 10,000).
    ///
    /// This is the Kaplan–Meier estimate: an attempt that was cut off tells nothing about how much longer it would
    /// have taken, so its weight is spread evenly over all that lasted longer. Where none lasted longer, the weight
    /// stays there, and a percentile that falls on it is [`AmongCensored`](Quantile::AmongCensored). Of answers and
    /// cuts in one bin the answers come first.
    pub fn quantile(&self, permyriad: u32) -> Quantile {
        // The share still unanswered is `kept / ONE · left / at_risk`: `kept` is the share at the last cut, `at_risk`
        // the number of attempts that went on from there. So it is rounded once for each bin with cuts, and not at
        // all without. The largest product is below 2^60 · 2^45 · 2^14.
        const ONE: u128 = 1 << 60;
        let unanswered = u128::from(WHOLE - permyriad.clamp(1, WHOLE));
        let mut kept = ONE;
        let mut at_risk = u128::from(self.samples());
        let mut left = at_risk;
        let mut beyond = None;
        for entry in &self.entries {
            if entry.completed > 0 {
                left -= u128::from(entry.completed);
                if kept * left * u128::from(WHOLE) <= ONE * unanswered * at_risk {
                    return Quantile::At(high_of(entry.bin));
                }
            }
            if entry.censored > 0 {
                beyond = Some(high_of(entry.bin));
                kept = kept * left / at_risk;
                left -= u128::from(entry.censored);
                at_risk = left;
            }
        }
        beyond.map_or(Quantile::Empty, |beyond| Quantile::AmongCensored { beyond })
    }

    fn add(&mut self, more: Entry) {
        match self.entries.binary_search_by_key(&more.bin, |e| e.bin) {
            Ok(found) => {
                let entry = &mut self.entries[found];
                entry.completed = entry.completed.saturating_add(more.completed);
                entry.censored = entry.censored.saturating_add(more.censored);
            }
            Err(place) => self.entries.insert(place, more),
        }
    }
}

fn bin_of(time: Millis) -> u16 {
    let ms = time.get().max(0).cast_unsigned();
    let first = u64::from(PER_OCTAVE);
    let bin = if ms < first {
        ms
    } else {
        let octave = u64::from(ms.ilog2() - first.ilog2());
        first * octave + (ms >> octave)
    };
    u16::try_from(bin).expect("63 bits make no bin above LAST_BIN")
}

/// How many times the bins have doubled in width at `bin`, and the lower edge in units of that width.
fn octave_and_step(bin: u16) -> (u16, i64) {
    if bin < PER_OCTAVE {
        return (0, i64::from(bin));
    }
    (bin / PER_OCTAVE - 1, i64::from(PER_OCTAVE + bin % PER_OCTAVE))
}

fn low_of(bin: u16) -> Millis {
    let (octave, step) = octave_and_step(bin);
    Millis::new(step << octave)
}

fn high_of(bin: u16) -> Millis {
    let (octave, step) = octave_and_step(bin);
    Millis::new((step << octave) + ((1 << octave) - 1))
}
