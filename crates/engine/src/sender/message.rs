//! What is sent: the body made of an event, and one attempt to deliver it.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderValue;
use tidegate_core::id::DeliveryId;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::event::{Body, Message};

use super::endpoint::Endpoint;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// What a payload is sent as, where it is sent as it is. A type that was checked when it came in, so one that cannot
/// stand in a header is not expected; the payload's own form stands in for it.
pub(super) fn content_type(body: &Body) -> HeaderValue {
    match body {
        Body::Json | Body::Text(None) => None,
        Body::JsonAs(given) | Body::Text(Some(given)) => HeaderValue::from_str(given).ok(),
    }
    .unwrap_or(if matches!(body, Body::Text(_)) { TEXT } else { JSON })
}

/// The payload in the standard envelope: its bytes as they are, a text as a JSON string.
pub(super) fn enveloped(message: &Message, expires_at: Option<Timestamp>) -> (Bytes, HeaderValue) {
    let Message { id, event_type, accepted_at, payload, body: form } = message;
    let mut body = BytesMut::with_capacity(payload.len() + payload.len() / 8 + 256);
    let expires_at = expires_at.map_or("null".to_owned(), |at| format!("\"{at}\""));
    body.put_slice(
        format!(
            r#"{{"id":"{id}","type":"{event_type}","created_at":"{accepted_at}","expires_at":{expires_at},"data":"#
        )
        .as_bytes(),
    );
    match form {
        Body::Json | Body::JsonAs(_) => body.put_slice(payload),
        Body::Text(_) => put_json_string(&mut body, payload),
    }
    body.put_u8(b'}');
    (body.freeze(), JSON)
}

/// One attempt to make.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where to.
    pub endpoint: Arc<Endpoint>,
    /// What.
    pub message: Arc<Message>,
    /// The delivery that it is an attempt of.
    pub delivery: DeliveryId,
    /// 1, 2, … for each request made for it.
    pub number: u32,
    /// When the event goes stale.
    pub expires_at: Option<Timestamp>,
    /// How long it may take, from the name to the complete head of the response.
    pub timeout: Millis,
    /// What day it is, for the signature.
    pub now: Timestamp,
}

/// Writes UTF-8 text as a JSON string: quotes, backslashes and control characters escaped, all else as it is.
fn put_json_string(out: &mut BytesMut, text: &[u8]) {
    out.put_u8(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.put_slice(&[b'\\', byte]),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            0..0x20 => out.put_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.put_u8(byte),
        }
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::id::EventId;
    use tidegate_core::pattern::EventType;

    fn message(payload: &'static str, body: Body) -> Message {
        Message {
            id: EventId::from_bits(1),
            event_type: EventType::parse("order.paid").unwrap(),
            accepted_at: Timestamp::from_millis(1_000),
            payload: Bytes::from_static(payload.as_bytes()),
            body,
        }
    }

    #[test]
    fn the_envelope_carries_a_json_payload_byte_for_byte() {
        let message = message(r#"{ "n": 1.0e5, "n": 123456789012345678901234567890 }"#, Body::Json);
        let expected = concat!(
            r#"{"id":"evt_00000000000000000000000001","type":"order.paid","created_at":"1970-01-01T00:00:01.000Z","#,
            r#""expires_at":null,"data":{ "n": 1.0e5, "n": 123456789012345678901234567890 }}"#
        );
        assert_eq!(enveloped(&message, None).0, expected);
    }

    #[test]
    fn the_envelope_carries_a_text_as_a_json_string() {
        let message = message("a\"b\\c\n\r\t\u{1}ä", Body::Text(None));
        let (body, _) = enveloped(&message, Some(Timestamp::from_millis(2_000)));
        let text = std::str::from_utf8(&body).unwrap();
        let tail = r#""expires_at":"1970-01-01T00:00:02.000Z","data":"a\"b\\c\n\r\t\u0001ä"}"#;
        assert!(text.ends_with(tail), "{text}");
    }

    #[test]
    fn a_payload_goes_by_its_own_type_or_by_its_form() {
        for (body, expected) in [
            (Body::Json, "application/json"),
            (Body::JsonAs("application/cloudevents+json".into()), "application/cloudevents+json"),
            (Body::Text(None), "text/plain"),
            (Body::Text(Some("text/csv".into())), "text/csv"),
            (Body::Text(Some("text/csv\r\nx: y".into())), "text/plain"),
        ] {
            assert_eq!(content_type(&body), expected);
        }
    }
}
