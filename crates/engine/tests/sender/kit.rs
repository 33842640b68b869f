//! Requests and senders as the tests need them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::dial::{Guard, Target};
use tidegate_core::headers::CustomHeaders;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::sign::Secret;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::resolver::Resolver;
use tidegate_engine::sender::{
    Answer, Endpoint, Envelope, Pool, Request, Sender, SenderConfig, Settings, SigningKey,
};
use tidegate_store::event::{Body, Message};

/// The moment at which all requests are made.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_614_265_330_250);
pub(crate) const EVENT: EventId = EventId::from_bits(0x0123_4567_89ab_cdef);
pub(crate) const PAYLOAD: &str = r#"{ "n": 1.0, "n": 2 }"#;

/// Loopback is allowed: the servers are there.
pub(crate) fn loopback() -> Guard {
    Guard::new(vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()])
}

pub(crate) fn config() -> SenderConfig {
    SenderConfig::new(Resolver::system(loopback()).unwrap())
}

pub(crate) fn sender() -> Sender {
    Sender::new(config())
}

pub(crate) fn secret() -> Secret {
    Secret::generate([7; 32])
}

pub(crate) fn settings(url: &str) -> Settings {
    Settings {
        target: Target::parse(url, false).unwrap(),
        secrets: vec![SigningKey { secret: secret(), valid_until: None }],
        headers: CustomHeaders::default(),
        auth: None,
        envelope: Envelope::Raw,
    }
}

pub(crate) fn message(payload: &'static str, body: Body) -> Arc<Message> {
    Arc::new(Message {
        id: EVENT,
        event_type: EventType::parse("order.paid").unwrap(),
        accepted_at: Timestamp::from_millis(1_614_265_000_000),
        payload: Bytes::from_static(payload.as_bytes()),
        body,
    })
}

pub(crate) fn request(settings: Settings) -> Request {
    Request {
        endpoint: Arc::new(Endpoint::new(settings).unwrap()),
        message: message(PAYLOAD, Body::Json),
        delivery: DeliveryId::from_bits(2),
        number: 1,
        expires_at: None,
        timeout: Millis::seconds(10),
        now: NOW,
    }
}

/// One attempt to `url`, with nothing kept from before.
pub(crate) async fn attempt(url: &str) -> Answer {
    sender().send(&Pool::default(), request(settings(url))).await
}

/// Waits for a condition, with a bound.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("never came: {what}"));
}
