//! The request of one attempt: headers, signature, body.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
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
        let (version, uri, template) = match protocol {
            Protocol::Http1 => (Version::HTTP_11, &endpoint.uri_http1, &endpoint.headers_http1),
            Protocol::Http2 => (Version::HTTP_2, &endpoint.uri_http2, &endpoint.headers_http2),
        };
        *composed.version_mut() = version;
        *composed.uri_mut() = uri.clone();
        let mut headers = template.clone();
        headers.insert(CONTENT_TYPE, self.content_type.clone());
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

fn written(text: &mut BytesMut, value: std::fmt::Arguments<'_>) -> HeaderValue {
    text.write_fmt(value).expect("a buffer that grows takes any text");
    plain(text.split().freeze())
}

fn plain(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).expect("numbers, ids, times and base64 are plain ASCII")
}
