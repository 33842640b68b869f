//! The request of one attempt: headers, signature, body.

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderName, HeaderValue, Method, Version};
use std::fmt::Write as _;
use tidegate_core::sign::signature;

use super::connection::Protocol;
use super::endpoint::Envelope;
use super::message::{Request, content_type, enveloped};

pub(super) const ID: HeaderName = HeaderName::from_static("webhook-id");
pub(super) const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
pub(super) const EVENT_TYPE: HeaderName = HeaderName::from_static("tidegate-event-type");
pub(super) const DELIVERY: HeaderName = HeaderName::from_static("tidegate-delivery");
pub(super) const ATTEMPT: HeaderName = HeaderName::from_static("tidegate-attempt");
const EXPIRES_AT: HeaderName = HeaderName::from_static("tidegate-expires-at");

/// What is sent for one attempt, signed once, whichever connection carries it.
pub(super) struct Signed {
    body: Bytes,
    content_type: HeaderValue,
    content_length: HeaderValue,
    id: HeaderValue,
    event_type: HeaderValue,
    signature: Option<HeaderValue>,
    timestamp: HeaderValue,
    delivery: HeaderValue,
    attempt: HeaderValue,
    expires_at: Option<HeaderValue>,
}

impl Signed {
    pub(super) fn new(request: &Request) -> Self {
        let Request { endpoint, message, now, .. } = request;
        let (body, content_type) = match endpoint.envelope {
            Envelope::Raw => (message.payload.clone(), content_type(&message.body)),
            Envelope::Standard => enveloped(message, request.expires_at),
        };
        // One allocation for all values.
        let mut text = BytesMut::with_capacity(256);
        let id = written(&mut text, format_args!("{}", message.id));
        let seconds = now.as_millis().div_euclid(1_000);
        let signature = signature(endpoint.secrets_at(*now), id.to_str().unwrap_or_default(), seconds, &body);
        Self {
            content_length: written(&mut text, format_args!("{}", body.len())),
            body,
            content_type,
            id,
            event_type: written(&mut text, format_args!("{}", message.event_type)),
            signature: (!signature.is_empty()).then(|| plain(signature.into())),
            timestamp: written(&mut text, format_args!("{seconds}")),
            delivery: written(&mut text, format_args!("{}", request.delivery)),
            attempt: written(&mut text, format_args!("{}", request.number)),
            expires_at: request.expires_at.map(|at| written(&mut text, format_args!("{at}"))),
        }
    }

    /// The request as `protocol` wants it.
    pub(super) fn compose(&self, request: &Request, protocol: Protocol) -> http::Request<Bytes> {
        let endpoint = &request.endpoint;
        let mut composed = http::Request::new(self.body.clone());
        *composed.method_mut() = Method::POST;
        let (version, uri, mut headers) = match protocol {
            Protocol::Http1 => (Version::HTTP_11, &endpoint.uri_http1, endpoint.headers_http1()),
            Protocol::Http2 => (Version::HTTP_2, &endpoint.uri_http2, endpoint.headers_http2()),
        };
        *composed.version_mut() = version;
        *composed.uri_mut() = uri.clone();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        headers.insert(CONTENT_LENGTH, self.content_length.clone());
        headers.insert(ID, self.id.clone());
        headers.insert(TIMESTAMP, self.timestamp.clone());
        headers.insert(EVENT_TYPE, self.event_type.clone());
        headers.insert(DELIVERY, self.delivery.clone());
        headers.insert(ATTEMPT, self.attempt.clone());
        match &self.signature {
            Some(signature) => headers.insert(SIGNATURE, signature.clone()),
            None => headers.remove(SIGNATURE),
        };
        if let Some(at) = &self.expires_at {
            headers.insert(EXPIRES_AT, at.clone());
        }
        *composed.headers_mut() = headers;
        composed
    }
}

/// A request as people may see it: all that goes out but what is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its headers, in the order in which they go out.
    pub headers: Vec<(String, ShownValue)>,
    /// Its body.
    pub body: Bytes,
}

/// The value of a header that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownValue {
    /// As it goes out.
    Plain(String),
    /// The signature: made from id, timestamp and body, with the secret.
    Signature,
    /// What the destination knows its callers by.
    Credential,
}

impl Request {
    /// The request as HTTP/1.1 carries it.
    pub fn shown(&self) -> Shown {
        let signed = Signed::new(self);
        let composed = signed.compose(self, Protocol::Http1);
        let credential = self.endpoint.credential.as_ref();
        let value = |name: &HeaderName, value: &HeaderValue| match name {
            name if *name == SIGNATURE => ShownValue::Signature,
            name if Some(name) == credential => ShownValue::Credential,
            name if [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name) => ShownValue::Credential,
            _ => ShownValue::Plain(String::from_utf8_lossy(value.as_bytes()).into_owned()),
        };
        let headers = composed.headers().iter();
        let headers = headers.map(|(name, text)| (name.as_str().to_owned(), value(name, text))).collect();
        Shown { headers, body: signed.body }
    }
}

fn written(text: &mut BytesMut, value: std::fmt::Arguments<'_>) -> HeaderValue {
    text.write_fmt(value).expect("a buffer that grows takes any text");
    plain(text.split().freeze())
}

fn plain(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).expect("numbers, ids, times and base64 are plain ASCII")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_core::dial::Target;
    use tidegate_core::headers::CustomHeaders;
    use tidegate_core::id::{DeliveryId, EventId};
    use tidegate_core::pattern::EventType;
    use tidegate_core::sign::Secret;
    use tidegate_core::time::{Millis, Timestamp};
    use tidegate_store::event::{Body, Message};

    use super::super::endpoint::{Auth, Endpoint, Settings, SigningKey};
    use super::*;

    #[test]
    fn what_is_shown_is_what_goes_out_but_for_secrets() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let auth = Auth::Header { name: "x-token".to_owned(), value: "a credential".to_owned() };
        let settings = Settings {
            target: Target::parse("https://example.com/hooks", true).unwrap(),
            secrets: vec![SigningKey { secret, valid_until: None }],
            headers: CustomHeaders::parse([("x-shop", "north"), ("x-token", "another")]).unwrap(),
            auth: Some(auth),
            envelope: Envelope::Standard,
        };
        let message = Message {
            id: EventId::from_bits(1),
            event_type: EventType::parse("order.paid").unwrap(),
            accepted_at: Timestamp::from_millis(1_000),
            payload: Bytes::from_static(b"{}"),
            body: Body::Json,
        };
        let request = Request {
            endpoint: Arc::new(Endpoint::new(settings).unwrap()),
            message: Arc::new(message),
            delivery: DeliveryId::from_bits(2),
            number: 3,
            expires_at: Some(Timestamp::from_millis(9_000)),
            timeout: Millis::seconds(5),
            now: Timestamp::from_millis(7_900),
        };
        let Shown { headers, body } = request.shown();
        let sent = Signed::new(&request).compose(&request, Protocol::Http1);
        assert_eq!(headers.len(), sent.headers().len(), "none is left out");
        let of = |wanted: &str| {
            let found = headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
            found.unwrap_or_else(|| panic!("no {wanted} in {headers:?}"))
        };
        for name in
            ["host", "webhook-id", "user-agent", "content-type", "tidegate-delivery", "tidegate-expires-at"]
        {
            let text = sent.headers()[name].to_str().unwrap();
            assert_eq!(of(name), ShownValue::Plain(text.to_owned()));
        }
        assert_eq!(of("webhook-timestamp"), ShownValue::Plain("7".to_owned()));
        assert_eq!(of("tidegate-attempt"), ShownValue::Plain("3".to_owned()));
        assert_eq!(of("x-shop"), ShownValue::Plain("north".to_owned()));
        assert_eq!(of("webhook-signature"), ShownValue::Signature);
        assert_eq!(of("x-token"), ShownValue::Credential);
        assert!(body.starts_with(br#"{"id":"evt_"#) && body.ends_with(b"\"data\":{}}"));
    }
}
