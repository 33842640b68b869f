//! A kit for tests that see only the outside: the real binary as a child process, a client for its API, and receivers that
//! remember what they were sent. A test takes it with `mod kit;`.
//!
//! ```ignore
//! let server = Server::start(&[]).await;
//! let receiver = Receiver::start(|_| Reply::status(200)).await;
//! let made = server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
//! server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": {}})).await.expect(202);
//! until(secs(5), "the event arrives", async || receiver.count() == 1).await;
//! ```
#![allow(dead_code, unused_imports, reason = "each test takes the parts it needs")]

#[path = "kit/client.rs"]
mod client;
#[path = "kit/dice.rs"]
mod dice;
#[path = "kit/events.rs"]
mod events;
#[path = "kit/postgres.rs"]
mod postgres;
#[path = "kit/receiver.rs"]
mod receiver;
#[path = "kit/server.rs"]
mod server;
#[path = "kit/watch.rs"]
mod watch;

use std::fmt::Display;
use std::time::{Duration, Instant};

pub(crate) use client::{Answer, Client, NoAnswer};
pub(crate) use dice::Dice;
pub(crate) use events::{ids_of_batch, numbered_event};
pub(crate) use postgres::Postgres;
pub(crate) use receiver::{Received, Receiver, Reply};
pub(crate) use server::{Server, free_port};
pub(crate) use watch::Watch;

/// The key for secrets of servers that share a database.
pub(crate) const SECRET_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// So many seconds.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The time by which tests measure.
#[expect(clippy::disallowed_methods, reason = "what is tested runs on the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time by which the server measures.
#[expect(clippy::disallowed_methods, reason = "what is tested runs on the real clock")]
pub(crate) fn wall() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Set in the second run of a test that has a namespace of its own.
const INSIDE: &str = "TEST_OWN_NAMESPACE";

/// Runs `inside` in a namespace of its own (`--net`, `--mount`): in a second process, which runs this test alone. On SQLite,
/// whatever the other tests use: a database outside is none of what such tests are about.
pub(crate) fn in_own_namespace(namespace: &str, test: &str, inside: impl Future<Output = ()>) {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.expect("a runtime").block_on(inside);
    }
    let unshare = |arguments: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.arg(namespace).args(arguments);
        command
    };
    if !unshare(&["true"]).output().is_ok_and(|tried| tried.status.success()) {
        return skip(&format!("a namespace of its own takes root (unshare {namespace})"));
    }
    let itself = std::env::current_exe().expect("this test");
    let mut again = unshare(&["--"]);
    again.arg(itself).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").env_remove("XTASK_STORE");
    let ran = again.output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
}

/// Says that a test cannot run here. Where all have to, as in `cargo xtask test`, that is a failure: one that was skipped would
/// look like one that passed.
#[expect(clippy::print_stdout, reason = "whoever runs it wants to know that it was skipped")]
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("XTASK_MUST_RUN").is_none(), "it must run, and cannot: {why}");
    println!("skipped: {why}");
}

/// What most of them need.
pub(crate) const NO_POSTGRES: &str = "PostgreSQL is not installed (Debian: apt-get install postgresql)";

/// Waits for a condition, and fails the test if it does not come true within the bound.
pub(crate) async fn until<F>(bound: Duration, what: impl Display, mut condition: F)
where
    F: AsyncFnMut() -> bool,
{
    let began = now();
    while !condition().await {
        assert!(began.elapsed() < bound, "within {bound:?}: {what}");
        tokio::time::sleep(millis(10)).await;
    }
}

/// Waits for a value, as [`until`] does for a condition.
pub(crate) async fn until_some<T, F>(bound: Duration, what: impl Display, mut look: F) -> T
where
    F: AsyncFnMut() -> Option<T>,
{
    let began = now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < bound, "within {bound:?}: {what}");
        tokio::time::sleep(millis(10)).await;
    }
}

#[tokio::test]
async fn a_receiver_remembers_what_the_client_sent() {
    let receiver =
        Receiver::start(|request| Reply::status(if request.path == "/no" { 503 } else { 200 })).await;
    let client = Client::new(&receiver.url, "tg_none");
    let sent = client.post("/yes", serde_json::json!({"a": 1})).await;
    assert_eq!(sent.status, 200);
    assert_eq!(client.get("/no").await.status, 503);
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(&received[0].body[..], br#"{"a":1}"#);
    assert_eq!(received[0].header("authorization"), Some("Bearer tg_none"));
    assert!(received[0].ended_at.is_some_and(|ended| ended >= received[0].began_at));
}
