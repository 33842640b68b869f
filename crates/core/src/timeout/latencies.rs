//! A destination's samples of the last days: one sketch a day, the days that are over as bytes.

use super::params::TimeoutParams;
use crate::sketch::{BadSketch, Sketch};
use crate::time::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// The samples by day. Days are numbered from 1970-01-01 in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Latencies {
    /// Days that are over, oldest first.
    closed: Vec<ClosedDay>,
    /// The day that samples are added to; none before the first one.
    open: Option<(i32, Sketch)>,
}

/// Bytes take a quarter of the room; they are read back only for a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClosedDay {
    number: i32,
    samples: u64,
    timeouts: u64,
    encoded: Box<[u8]>,
}

impl ClosedDay {
    fn new(number: i32, sketch: &Sketch) -> Self {
        Self {
            number,
            samples: sketch.samples(),
            timeouts: sketch.censored(),
            encoded: sketch.encode().into(),
        }
    }
}

impl Latencies {
    pub(super) fn restore<'a>(days: impl IntoIterator<Item = (i32, &'a [u8])>) -> Result<Self, BadSketch> {
        let mut sketches = Vec::new();
        for (number, bytes) in days {
            sketches.push((number, Sketch::decode(bytes)?));
        }
        sketches.sort_unstable_by_key(|day| day.0);
        let open = sketches.pop();
        Ok(Self { closed: sketches.iter().map(|(number, s)| ClosedDay::new(*number, s)).collect(), open })
    }

    pub(super) fn days(&self) -> impl Iterator<Item = (i32, Vec<u8>)> + '_ {
        let closed = self.closed.iter().map(|day| (day.number, day.encoded.to_vec()));
        let open = self.open.iter().filter(|(_, sketch)| !sketch.is_empty());
        closed.chain(open.map(|(number, sketch)| (*number, sketch.encode())))
    }

    /// All samples kept.
    pub(super) fn samples(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(_, sketch)| sketch.samples());
        self.closed.iter().map(|day| day.samples).sum::<u64>() + open
    }

    /// The timeouts among them.
    pub(super) fn timeouts(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(_, sketch)| sketch.censored());
        self.closed.iter().map(|day| day.timeouts).sum::<u64>() + open
    }

    /// The samples of the window that ends now, merged. Older ones are dropped.
    pub(super) fn window(&mut self, now: Timestamp, params: &TimeoutParams) -> Sketch {
        let mut merged = self.today(now, params).clone();
        for day in &self.closed {
            let sketch = Sketch::decode(&day.encoded).expect("encoded here, from a sketch");
            merged.merge(&sketch);
        }
        merged
    }

    /// The sketch for samples that come in now.
    pub(super) fn today(&mut self, now: Timestamp, params: &TimeoutParams) -> &mut Sketch {
        let day = day_of(now);
        let (number, sketch) = self.open.get_or_insert_with(|| (day, Sketch::new()));
        if day > *number {
            if !sketch.is_empty() {
                self.closed.push(ClosedDay::new(*number, sketch));
                sketch.clear();
            }
            *number = day;
            let first = day - i32::from(params.window_days);
            self.closed.retain(|closed| closed.number >= first);
        } else if day < *number - 1 {
            // The clock was set back, by more than a step around midnight: what it calls the future cannot be kept
            // apart from what is to come.
            *number = day;
            self.closed.retain(|closed| closed.number < day);
        }
        sketch
    }
}

fn day_of(now: Timestamp) -> i32 {
    i32::try_from(now.as_millis().div_euclid(DAY_MS)).expect("the years -9999 to 9999 have few enough days")
}
