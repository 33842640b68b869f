//! Changes to a destination while a hundred requests to it are in flight.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};
use tidegate_core::sign::{Secret, signature};

use super::kit::{Received, Receiver, Reply, Server, millis, now, secs, until, until_some};

/// So many are in flight when something is changed.
const IN_FLIGHT: usize = 100;
/// So many more wait.
const WAITING: usize = 200;
/// How long the receiver thinks about each.
const THINKS: u64 = 1_500;

/// A server, a receiver that thinks, and a destination with that many in flight.
struct Busy {
    server: Server,
    receiver: Receiver,
}

impl Busy {
    async fn make() -> Self {
        let server = Server::start(&[]).await;
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        let body = json!({"url": receiver.url, "external_id": "d", "max_concurrency": IN_FLIGHT});
        server.post("/v1/destinations", body).await.expect(201);
        let busy = Self { server, receiver };
        // Whoever was never sent anything is approached with few at a time.
        busy.publish(2 * IN_FLIGHT).await;
        until(secs(20), "it is known", async || busy.total("delivered").await == 2 * IN_FLIGHT).await;
        busy.receiver.behave(|_| Reply::status(200).after(millis(THINKS)));
        busy.publish(IN_FLIGHT + WAITING).await;
        until(secs(20), "a hundred are in flight", async || busy.receiver.count() >= 3 * IN_FLIGHT).await;
        busy
    }

    async fn publish(&self, count: usize) {
        let events: Vec<_> = (0..count).map(|n| json!({"event_type": "a.b", "payload": n})).collect();
        self.server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    }

    async fn total(&self, status: &str) -> usize {
        let path = format!("/v1/deliveries?status={status}&limit=1&total=true");
        let listed = self.server.get(&path).await.expect(200);
        listed["total"].as_u64().and_then(|total| total.try_into().ok()).expect("a number")
    }

    /// Requests that came more than a second after the change.
    fn late(&self, changed: Instant) -> Vec<Received> {
        let received = self.receiver.received().into_iter();
        received.filter(|one| one.began_at > changed + secs(1)).collect()
    }

    /// What was in flight at the change was heard out, and nothing was sent twice.
    fn check_heard_out(&self, changed: Instant) {
        let received = self.receiver.received();
        let thought = received[2 * IN_FLIGHT..].iter().filter(|one| one.began_at < changed);
        for one in thought.filter(|one| one.answered == 200) {
            let open = one.ended_at.expect("it is over") - one.began_at;
            assert!(open >= millis(THINKS), "cut off after {open:?}");
        }
        let different: BTreeSet<_> = received.iter().map(Received::event_id).collect();
        assert_eq!(different.len(), received.len(), "each once");
    }
}

/// Goal: what is in flight to a destination that is deleted is heard out, nothing more is sent, and all that waited ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_destination_deleted_with_a_hundred_in_flight() {
    let busy = Busy::make().await;
    assert_eq!(busy.server.delete("/v1/destinations/d").await.status, 204);
    let changed = now();
    let all = 3 * IN_FLIGHT + WAITING;
    until(secs(20), "all have ended", async || {
        busy.total("delivered").await + busy.total("cancelled").await == all
    })
    .await;
    until(secs(5), "the last were answered", async || {
        busy.receiver.received().iter().all(|one| one.ended_at.is_some())
    })
    .await;
    assert_eq!(busy.late(changed).len(), 0, "nothing is sent any more");
    busy.check_heard_out(changed);
    assert!(busy.total("cancelled").await >= WAITING - IN_FLIGHT, "{}", busy.total("cancelled").await);
}

/// Goal: what is in flight to a destination that is switched off is delivered; the rest waits, and goes when it is on again.
#[tokio::test(flavor = "multi_thread")]
async fn a_destination_disabled_with_a_hundred_in_flight() {
    let busy = Busy::make().await;
    busy.server.patch("/v1/destinations/d", json!({"active": false})).await.expect(200);
    let changed = now();
    until(secs(20), "those in flight are delivered", async || {
        busy.total("delivered").await == busy.receiver.count()
    })
    .await;
    // Longer than an exchange takes: were it not held, more would have gone.
    until(secs(10), "time passes", async || changed.elapsed() > millis(2 * THINKS)).await;
    assert_eq!(busy.late(changed).len(), 0, "nothing is sent any more");
    let sent = busy.receiver.count();
    assert_eq!(busy.total("delivered").await, sent, "what was in flight is delivered");
    assert_eq!(busy.total("queued").await, 3 * IN_FLIGHT + WAITING - sent, "the rest waits");
    busy.receiver.behave(|_| Reply::status(200));
    busy.server.patch("/v1/destinations/d", json!({"active": true})).await.expect(200);
    let all = 3 * IN_FLIGHT + WAITING;
    until(secs(20), "the rest goes", async || busy.total("delivered").await == all).await;
    busy.check_heard_out(changed);
}

/// Goal: a rate that is lowered while a hundred are in flight holds for all that starts a second later.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_lowered_with_a_hundred_in_flight() {
    const PER_SECOND: u32 = 20;
    const BURST: u32 = 5;
    let busy = Busy::make().await;
    let limit = json!({"max": PER_SECOND, "per": "second", "burst_capacity": BURST});
    busy.server.patch("/v1/destinations/d", json!({"rate_limit": limit})).await.expect(200);
    let changed = now();
    busy.receiver.behave(|_| Reply::status(200));
    until(secs(20), "it goes on", async || busy.late(changed).len() >= 50).await;
    let late = busy.late(changed);
    for (first, one) in late.iter().enumerate() {
        for (last, other) in late.iter().enumerate().skip(first) {
            let time = other.began_at.saturating_duration_since(one.began_at) + millis(100);
            let most = f64::from(BURST) + f64::from(PER_SECOND) * time.as_secs_f64();
            assert!((last - first + 1) as f64 <= most, "{} in {time:?}", last - first + 1);
        }
    }
    busy.check_heard_out(changed);
}

/// Goal: an attempt is signed with the secrets that hold when it is made, not those of the attempt before.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_signed_with_the_secrets_of_its_own_time() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|request| Reply::status(if request.attempt() < 3 { 500 } else { 200 })).await;
    let retry = json!({"max_attempts": 3, "delays_seconds": [2], "jitter": "none"});
    let body = json!({"url": receiver.url, "external_id": "d", "retry_policy": retry});
    let made = server.post("/v1/destinations", body).await.expect(201);
    let secret = |shown: &Value| {
        Secret::parse(shown["signing_secret"].as_str().expect("it is told once")).expect("a secret")
    };
    let first = secret(&made);
    server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    let attempt = async |number: u32| {
        until_some(secs(20), format!("attempt {number}"), async || {
            receiver.received().into_iter().find(|one| one.attempt() == number)
        })
        .await
    };
    let signed = |one: &Received, secrets: &[&Secret]| {
        let time = one.header("webhook-timestamp").and_then(|time| time.parse().ok()).expect("a time");
        let expected = signature(secrets.iter().copied(), one.event_id(), time, &one.body);
        let parts = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(parts(one.header("webhook-signature").expect("it is signed")), parts(&expected));
    };
    signed(&attempt(1).await, &[&first]);
    let rotate = "/v1/destinations/d/rotate-secret";
    let second = secret(&server.post(rotate, json!({"overlap_seconds": 0})).await.expect(200));
    signed(&attempt(2).await, &[&second]);
    let third = secret(&server.post(rotate, json!({"overlap_seconds": 3_600})).await.expect(200));
    signed(&attempt(3).await, &[&second, &third]);
}
