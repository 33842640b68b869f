//! A delivery that kills the server whenever it is at work on it: after a few deaths it is put aside, and the server lives on.
//! Its histories are not judged: a dead letter that nobody ever tried is what has to come of it.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::Scenario;
use crate::clock::{secs, until};
use crate::history::History;
use crate::receiver::{Receiver, Reply};
use crate::rig::{Outcome, Rig};
use crate::server::{Launch, Server};
use crate::tracer::{Injection, MISSING, Tracer};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "poison",
    about: "a delivery that kills the server whenever it is at work on it",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

/// Deaths until it is put aside: the first one nobody watches, and then three.
const WATCHED_DEATHS: u64 = 3;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if !Tracer::works() {
        return Ok(Outcome::Skipped(MISSING.to_owned()));
    }
    std::fs::create_dir_all(&rig.home)?;
    let history = Arc::new(History::begin(&rig.home)?);
    let data_dir = rig.home.join("data");
    let mut server = Server::new(&rig.binary, &rig.home, &data_dir, &history)?;
    server.start(&Launch::plain()).await?;
    let receiver = Receiver::start("poison", &history, Arc::new(|_| Reply::status(200))).await?;
    let destination = json!({"url": format!("http://{}/", receiver.address), "ordering": "fifo"});
    let destination = server.client.must(Method::POST, "/v1/destinations", &destination).await?;
    let destination = format!("/v1/destinations/{}", destination["id"].as_str().context("an id")?);
    server.client.must(Method::POST, &format!("{destination}/pause"), &Value::Null).await?;
    let poison = publish(&server).await?;
    let next = publish(&server).await?;
    server.kill9();

    let launch = Tracer::new(&rig.home)
        .launch(&Injection { calls: "connect", what: "signal=SIGKILL:when=1".to_owned() });
    for _ in 0..WATCHED_DEATHS {
        server.spawn(&launch)?;
        // It may be dead before it can answer, and before it has stored that the destination goes on.
        let resume = format!("{destination}/resume");
        let died = until(secs(60), async || {
            let _ = server.client.must(Method::POST, &resume, &Value::Null).await;
            server.has_ended()
        });
        ensure!(died.await, "nothing killed it: {}", server.log_tail());
        server.note_kill();
    }
    ensure!(receiver.requests() == 0, "it was sent");
    rig.count("deaths", 1 + WATCHED_DEATHS);

    server.start(&Launch::plain()).await?;
    let over =
        until(secs(10), async || status(&server, &next).await.is_ok_and(|(word, _)| word == "delivered"));
    ensure!(
        over.await,
        "what comes after it in its line was not delivered: {:?}",
        status(&server, &next).await
    );
    let (word, reason) = status(&server, &poison).await?;
    ensure!(word == "dead_letter" && reason.starts_with("put aside"), "it is {word}: {reason}");
    ensure!(receiver.requests() == 1, "{} requests instead of one", receiver.requests());
    server.terminate()?;
    ensure!(server.end(secs(60)).await?.success(), "it does not stop well: {}", server.log_tail());
    ensure!(!data_dir.join("at_work").exists(), "notes are left after a clean stop");
    Ok(Outcome::Passed)
}

/// Publishes an event, and says where it is to be found.
async fn publish(server: &Server) -> Result<String> {
    let event = json!({"event_type": "poison.drunk", "payload": {}});
    let published = server.client.must(Method::POST, "/v1/outbound-events", &event).await?;
    Ok(format!("/v1/outbound-events/{}", published["id"].as_str().context("an id")?))
}

/// How an event's only delivery stands, and why.
async fn status(server: &Server, path: &str) -> Result<(String, String)> {
    let event = server.client.get(path).await?;
    let text = |name: &str| event["deliveries"][0][name].as_str().unwrap_or_default().to_owned();
    Ok((text("status"), text("final_reason")))
}
