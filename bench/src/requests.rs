//! The requests that the generator sends: a payload straight to a sink, or events to the server, alone or in batches.

use crate::load::Requests;
use crate::payload::{LENGTH, Payload};

/// The payload and nothing else, to a sink or a relay.
#[derive(Clone)]
pub(crate) struct Plain {
    head: String,
}

impl Plain {
    pub(crate) fn to(address: &str) -> Self {
        let head = format!(
            "POST /ok/0 HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {LENGTH}\r\n\r\n"
        );
        Self { head }
    }
}

impl Requests for Plain {
    fn events(&self) -> u64 {
        1
    }

    fn write(&mut self, first: u64, sent_at: u64, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(self.head.as_bytes());
        buffer.extend_from_slice(Payload::new().with(first, sent_at));
    }
}

/// Events of the types `prefix.00000`, `prefix.00001`, …: `pick` says which type an event has.
#[derive(Clone)]
pub(crate) struct Publish {
    head: String,
    prefix: &'static str,
    batch: u64,
    pick: fn(u64) -> u64,
}

impl Publish {
    /// One event in each request.
    pub(crate) fn singles(address: &str, key: &str, prefix: &'static str, pick: fn(u64) -> u64) -> Self {
        Self::new(address, key, prefix, None, pick)
    }

    /// So many events in each request.
    pub(crate) fn batches(
        address: &str,
        key: &str,
        prefix: &'static str,
        batch: u64,
        pick: fn(u64) -> u64,
    ) -> Self {
        Self::new(address, key, prefix, Some(batch), pick)
    }

    fn new(address: &str, key: &str, prefix: &'static str, batch: Option<u64>, pick: fn(u64) -> u64) -> Self {
        let path = if batch.is_some() { "/v1/outbound-events/batch" } else { "/v1/outbound-events" };
        let mut publish = Self { head: String::new(), prefix, batch: batch.unwrap_or(0), pick };
        let mut body = Vec::new();
        publish.body(0, 0, &mut body);
        publish.head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        publish
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

    fn body(&self, first: u64, sent_at: u64, buffer: &mut Vec<u8>) {
        let mut payload = Payload::new();
        if self.batch == 0 {
            return self.event(&mut payload, first, sent_at, buffer);
        }
        buffer.extend_from_slice(b"{\"events\":[");
        for number in first..first + self.batch {
            if number > first {
                buffer.push(b',');
            }
            self.event(&mut payload, number, sent_at, buffer);
        }
        buffer.extend_from_slice(b"]}");
    }
}

impl Requests for Publish {
    fn events(&self) -> u64 {
        self.batch.max(1)
    }

    fn write(&mut self, first: u64, sent_at: u64, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(self.head.as_bytes());
        self.body(first, sent_at, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_json_as_long_as_its_head_says() {
        let mut publish = Publish::batches("h", "k", "bench", 3, |number| number % 100);
        let mut buffer = Vec::new();
        publish.write(98, 5, &mut buffer);
        let text = String::from_utf8(buffer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        let types: Vec<_> =
            json["events"].as_array().unwrap().iter().map(|event| event["event_type"].clone()).collect();
        assert_eq!(types, ["bench.00098", "bench.00099", "bench.00000"]);
        assert_eq!(json["events"][2]["payload"]["n"], "000000000100");
    }
}
