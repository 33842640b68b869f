//! What the sink has received: how many, each how often, and how long they took.

use serde_json::{Value, json};

use crate::payload;
use crate::stopwatch::shared_nanos;

/// Numbers above this are not told apart: it bounds the memory of the sink.
const MAX_NUMBER: u64 = 1 << 30;

/// Kept while requests come in.
pub(crate) struct Book {
    /// So many destinations get each event.
    fan_out: u64,
    /// One bit for each event and destination.
    seen: Vec<u64>,
    stats: Stats,
}

/// What was received since the last start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    /// Requests to `/ok`.
    pub(crate) received: u64,
    /// Different pairs of event and destination among them.
    pub(crate) distinct: u64,
    /// Requests to other paths.
    pub(crate) others: u64,
    /// The first and the last receipt on the shared clock, in nanoseconds.
    pub(crate) first_at: u64,
    pub(crate) last_at: u64,
    /// From sending to receipt, in microseconds, of those that carry a time.
    pub(crate) latencies: Vec<u64>,
}

impl Book {
    pub(crate) fn new(fan_out: u64) -> Self {
        Self { fan_out: fan_out.max(1), seen: Vec::new(), stats: Stats::default() }
    }

    pub(crate) fn note(&mut self, destination: u64, body: &[u8]) {
        let at = shared_nanos();
        let stats = &mut self.stats;
        stats.received += 1;
        stats.last_at = at;
        if stats.first_at == 0 {
            stats.first_at = at;
        }
        let Some((number, sent_at)) = payload::parse(body) else { return };
        if sent_at > 0 {
            stats.latencies.push(at.saturating_sub(sent_at) / 1_000);
        }
        let bit = (number * self.fan_out + destination % self.fan_out).min(MAX_NUMBER);
        let (word, mask) = (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64));
        if word >= self.seen.len() {
            self.seen.resize((word + 1).next_power_of_two(), 0);
        }
        stats.distinct += u64::from(self.seen[word] & mask == 0);
        self.seen[word] |= mask;
    }

    pub(crate) fn note_other(&mut self) {
        self.stats.others += 1;
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Stats {
    pub(crate) fn to_json(&self) -> String {
        let Self { received, distinct, others, first_at, last_at, latencies } = self;
        json!({"received": received, "distinct": distinct, "others": others, "first_at": first_at, "last_at": last_at,
               "latencies": latencies})
        .to_string()
    }

    pub(crate) fn from_json(json: &Value) -> Self {
        let number = |name: &str| json[name].as_u64().unwrap_or(0);
        let latencies =
            json["latencies"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        Self {
            received: number("received"),
            distinct: number("distinct"),
            others: number("others"),
            first_at: number("first_at"),
            last_at: number("last_at"),
            latencies,
        }
    }

    /// The latencies in milliseconds.
    pub(crate) fn millis(&self) -> Vec<f64> {
        self.latencies.iter().map(|micros| *micros as f64 / 1_000.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;

    #[test]
    fn the_same_event_at_the_same_destination_counts_once() {
        let (mut book, mut payload) = (Book::new(10), Payload::new());
        for (number, destination) in [(7, 0), (7, 1), (7, 1), (8, 0), (8, 10)] {
            book.note(destination, payload.with(number, 0));
        }
        assert_eq!((book.stats().received, book.stats().distinct), (5, 3));
        let read = Stats::from_json(&serde_json::from_str(&book.stats().to_json()).unwrap());
        assert_eq!((read.received, read.distinct, read.latencies.len()), (5, 3, 0));
    }
}
