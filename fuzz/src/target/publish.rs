//! The body that publishes an event.
//!
//! Laws: nothing but 400 and 422 refuses it; a payload that is accepted is sent with the very bytes that stand in the body, or
//! as the text of its string; it is no deeper than receivers' parsers go; a batch of one is read as the event alone.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate::reading::{self, Event};

/// The deepest payload that is accepted.
const DEEPEST: usize = 128;

/// Input: the body.
pub fn run(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let read = reading::event(&body);
    if let Err(refusal) = &read {
        assert!(matches!(refusal.status, 400 | 422), "{refusal:?}");
        assert!(!refusal.message.chars().any(char::is_control), "{refusal:?}");
        let is_json = str::from_utf8(data).is_ok() && serde_json::from_slice::<IgnoredAny>(data).is_ok();
        assert_eq!(refusal.status == 422, is_json, "{refusal:?}");
    }
    if let Ok(event) = &read {
        check(event, data);
    }
    check_batch(data, read.is_ok());
}

fn check(event: &Event, body: &[u8]) {
    // Whatever else it may be, it is an object, and its payload stands there once.
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).expect("an object");
    let written = fields["payload"].get();
    let event_type: String = serde_json::from_str(fields["event_type"].get()).expect("a string");
    assert_eq!(event.event_type, event_type);
    if event.is_json {
        assert_eq!(event.payload, written.as_bytes(), "byte for byte");
        assert!(depth(&event.payload) <= DEEPEST);
    } else {
        assert_eq!(serde_json::from_str::<String>(written).expect("a string").as_bytes(), event.payload);
    }
}

/// The same event in a list and on a line.
fn check_batch(data: &[u8], is_event: bool) {
    let list = [b"{\"events\":[", data, b"]}"].concat();
    if is_event {
        let parts = reading::batch(&list, false).expect("a list of one");
        assert_eq!(parts, [data.trim_ascii()]);
    }
    for lines in [false, true] {
        match reading::batch(data, lines) {
            Ok(parts) => {
                assert!((1..=1_000).contains(&parts.len()));
                assert!(
                    parts.iter().all(|part| data.as_ptr_range().contains(&part.as_ptr())),
                    "nothing is copied"
                );
            }
            Err(refusal) => assert!(matches!(refusal.status, 400 | 422), "{refusal:?}"),
        }
    }
}

/// How deep JSON is nested, by going along it without looking at anything but brackets and strings.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut bytes) = (0_usize, 0, json.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn skip_string<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}
