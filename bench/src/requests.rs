//! The requests that the generator sends: a payload straight to a sink, or events to the server, alone or in batches.

use crate::load::Requests;
use crate::payload::Payload;
use crate::stack::Target;

/// The payload and nothing else, to a sink or a relay.
#[derive(Clone)]
pub(crate) struct Plain(pub(crate) Target);

impl Requests for Plain {
    fn target(&self) -> Target {
        self.0.clone()
    }

    fn events(&self) -> u64 {
        1
    }

    fn body(&self, first: u64, sent_at: u64) -> Vec<u8> {
        Payload::new().with(first, sent_at).to_vec()
    }
}

/// Events of the types `prefix.00000`, `prefix.00001`, …: `pick` says which type an event has.
#[derive(Clone)]
pub(crate) struct Publish {
    target: Target,
    prefix: &'static str,
    /// Events in each request; none: one, published alone.
    batch: Option<u64>,
    pick: fn(u64) -> u64,
    /// The number of the first event.
    from: u64,
}

impl Publish {
    /// The same, with events that are numbered from here on.
    pub(crate) fn numbered_from(self, from: u64) -> Self {
        Self { from, ..self }
    }

    /// One event in each request.
    pub(crate) fn singles(
        address: &str,
        key: &'static str,
        prefix: &'static str,
        pick: fn(u64) -> u64,
    ) -> Self {
        let target = Target { address: address.to_owned(), path: "/v1/outbound-events", key: Some(key) };
        Self { target, prefix, batch: None, pick, from: 0 }
    }

    /// So many events in each request.
    pub(crate) fn batches(
        address: &str,
        key: &'static str,
        prefix: &'static str,
        batch: u64,
        pick: fn(u64) -> u64,
    ) -> Self {
        let target =
            Target { address: address.to_owned(), path: "/v1/outbound-events/batch", key: Some(key) };
        Self { target, prefix, batch: Some(batch), pick, from: 0 }
    }

    fn event(&self, payload: &mut Payload, number: u64, sent_at: u64, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(b"{\"event_type\":\"");
        buffer.extend_from_slice(self.prefix.as_bytes());
        let index = (self.pick)(number);
        let digits = [10_000, 1_000, 100, 10, 1]
            .map(|place| b"0123456789"[usize::try_from(index / place % 10).unwrap_or(0)]);
        buffer.push(b'.');
        buffer.extend_from_slice(&digits);
        buffer.extend_from_slice(b"\",\"payload\":");
        buffer.extend_from_slice(payload.with(number, sent_at));
        buffer.push(b'}');
    }
}

impl Requests for Publish {
    fn target(&self) -> Target {
        self.target.clone()
    }

    fn events(&self) -> u64 {
        self.batch.unwrap_or(1)
    }

    fn body(&self, first: u64, sent_at: u64) -> Vec<u8> {
        let (mut payload, first) = (Payload::new(), self.from + first);
        let Some(batch) = self.batch else {
            let mut body = Vec::with_capacity(640);
            self.event(&mut payload, first, sent_at, &mut body);
            return body;
        };
        let mut body = b"{\"events\":[".to_vec();
        for number in first..first + batch {
            if number > first {
                body.push(b',');
            }
            self.event(&mut payload, number, sent_at, &mut body);
        }
        body.extend_from_slice(b"]}");
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_json() {
        let publish = Publish::batches("h", "k", "bench", 3, |number| number % 100);
        let json: serde_json::Value = serde_json::from_slice(&publish.body(98, 5)).unwrap();
        let types: Vec<_> =
            json["events"].as_array().unwrap().iter().map(|event| event["event_type"].clone()).collect();
        assert_eq!(types, ["bench.00098", "bench.00099", "bench.00000"]);
        assert_eq!(json["events"][2]["payload"]["n"], "000000000100");
    }
}
