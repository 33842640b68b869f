//! Replays and cancellations of many deliveries: jobs with progress, a budget, and a life across restarts.

mod kit;

use std::time::Duration;

use kit::{Client, Postgres, Receiver, Reply, SECRET_KEY, Server, millis, now, secs, until, until_some};
use serde_json::{Value, json};

/// A destination that refuses, and so many dead letters of it.
async fn dead_letters(server: &Client, receiver: &Receiver, count: usize) -> Value {
    let policies = json!({"url": receiver.url, "retry_policy": {"max_attempts": 1}, "circuit_breaker": {"enabled": false}});
    let destination = server.post("/v1/destinations", policies).await.expect(201);
    let events: Vec<Value> = (0..count).map(|n| json!({"event_type": "a.b", "payload": {"n": n}})).collect();
    server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    until(secs(20), "all are dead", async || total(server, "status=dead_letter").await == count as u64).await;
    destination
}

async fn total(server: &Client, query: &str) -> u64 {
    let listed = server.get(&format!("/v1/deliveries?total=true&limit=1&{query}")).await.expect(200);
    listed["total"].as_u64().expect("a number")
}

async fn until_done(server: &Client, kind: &str, job: &Value) -> Value {
    let path = format!("/v1/{kind}/{}", job["id"].as_str().expect("a string"));
    until_some(secs(20), "the job is done", async || {
        let shown = server.get(&path).await.expect(200);
        (shown["status"] == "done").then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_replay_sends_dead_letters_again_once_and_as_bulk() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let destination = dead_letters(&server, &receiver, 25).await;
    let filter = json!({"destination_id": destination["id"], "status": "dead_letter"});
    let counted = server.post("/v1/replays", json!({"filter": filter, "dry_run": true})).await.expect(200);
    assert_eq!(counted, json!({"dry_run": true, "count": 25}));
    assert_eq!(server.get("/v1/replays").await.expect(200)["items"], json!([]), "a dry run makes no job");
    receiver.behave(|_| Reply::status(200));
    let job = server.post("/v1/replays", json!({"filter": filter})).await.expect(202);
    assert_eq!((&job["status"], &job["total"]), (&json!("running"), &json!(25)));
    let done = until_done(&server, "replays", &job).await;
    assert_eq!((&done["done"], &done["skipped"]), (&json!(25), &json!(0)));
    until(secs(20), "all are delivered", async || total(&server, "status=delivered").await == 25).await;
    let listed = server.get("/v1/deliveries?status=delivered").await.expect(200);
    assert_eq!(
        (&listed["items"][0]["priority"], listed["items"][0]["replay_of"].is_string()),
        (&json!(4), true)
    );
    let again = server.post("/v1/replays", json!({"filter": filter})).await.expect(202);
    assert_eq!(again["total"], 0);
    let done = until_done(&server, "replays", &again).await;
    assert_eq!((&done["done"], &done["skipped"]), (&json!(0), &json!(25)), "what was replayed is left alone");
    assert_eq!(server.get("/v1/replays").await.expect(200)["items"].as_array().expect("a list").len(), 2);
    for (field, body) in [
        ("filter.status", json!({"filter": {"status": "queued"}})),
        ("filter.from", json!({"filter": {"from": "soon"}})),
        ("filter.color", json!({"filter": {"color": "red"}})),
        ("max_per_minute", json!({"filter": {}, "max_per_minute": 0})),
        ("priority", json!({"filter": {}, "priority": 9})),
    ] {
        let refused = server.post("/v1/replays", body.clone()).await.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], field, "{body}");
    }
}

/// Goal: a dry run, and the total of a job, say what the job then makes.
/// Method: dead letters of a destination, three of which were sent again and died again; then some of another one, which is
/// deleted.
#[tokio::test]
async fn a_dry_run_counts_what_the_job_makes() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let kept = dead_letters(&server, &receiver, 7).await;
    let count = async || {
        let counted = server.post("/v1/replays", json!({"filter": {}, "dry_run": true})).await.expect(200);
        counted["count"].as_u64().expect("a number")
    };
    let died = async |count| {
        until(secs(20), "all are dead", async || total(&server, "status=dead_letter").await == count).await;
    };
    assert_eq!(count().await, 7);
    let listed = server.get("/v1/deliveries").await.expect(200);
    for delivery in &listed["items"].as_array().expect("a list")[..3] {
        let path = format!("/v1/deliveries/{}/replay", delivery["id"].as_str().expect("an id"));
        server.post(&path, json!({})).await.expect(202);
    }
    died(10).await;
    assert_eq!(count().await, 7, "the newest of each event");

    let path = format!("/v1/destinations/{}", kept["id"].as_str().expect("an id"));
    let policies = json!({"url": receiver.url, "retry_policy": {"max_attempts": 1}});
    let other = server.post("/v1/destinations", policies).await.expect(201);
    let to_both = json!({"event_type": "a.b", "payload": {}});
    server.post("/v1/outbound-events", to_both).await.expect(202);
    died(12).await;
    assert_eq!(count().await, 9, "one event at two destinations");
    let other = format!("/v1/destinations/{}", other["id"].as_str().expect("an id"));
    assert_eq!(server.delete(&other).await.status, 204);
    assert_eq!(count().await, 8, "nothing can be sent to a deleted one");

    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    let job = server.post("/v1/replays", json!({"filter": {}})).await.expect(202);
    assert_eq!(job["total"], 8);
    let done = until_done(&server, "replays", &job).await;
    assert_eq!((&done["done"], &done["skipped"]), (&json!(8), &json!(4)));
    assert_eq!(total(&server, "status=queued").await, 8);
    assert_eq!(count().await, 0, "all were sent again");
}

#[tokio::test]
async fn a_replay_goes_on_after_a_crash_and_stops_when_told() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    dead_letters(&server, &receiver, 8).await;
    receiver.behave(|_| Reply::status(200));
    let job = server.post("/v1/replays", json!({"filter": {}, "max_per_minute": 120})).await.expect(202);
    until(secs(20), "some are delivered", async || total(&server, "status=delivered").await >= 2).await;
    server.kill9();
    server.restart().await;
    let done = until_done(&server, "replays", &job).await;
    assert_eq!((&done["done"], &done["skipped"]), (&json!(8), &json!(0)));
    until(secs(20), "all are delivered", async || total(&server, "status=delivered").await == 8).await;
    assert_eq!(total(&server, "status=dead_letter").await, 8, "each was replayed once");

    let slow = server
        .post("/v1/replays", json!({"filter": {"status": "delivered"}, "max_per_minute": 1}))
        .await
        .expect(202);
    let path = format!("/v1/replays/{}", slow["id"].as_str().expect("a string"));
    assert_eq!(server.delete(&path).await.status, 204);
    let stopped = server.get(&path).await.expect(200);
    assert_eq!(stopped["status"], "stopped");
    assert!(
        stopped["finished_at"].is_string() && stopped["done"].as_u64().expect("a number") <= 1,
        "{stopped}"
    );
}

/// Goal: a replay that is stuck keeps to the number of deliveries that it may have open, also after a restart, and goes on when
/// some of them end.
/// Method: more dead letters than that, to a destination that is paused; a crash; then some of what waits is withdrawn, and the
/// replay must make so many more and not all.
#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_replay_keeps_to_its_bound_after_a_crash() {
    const OPEN: u64 = 1_000;
    const FREED: usize = 150;
    const COUNT: usize = 1_450;
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let policies = json!({"url": receiver.url, "retry_policy": {"max_attempts": 1},
        "circuit_breaker": {"enabled": false}, "max_concurrency": 100});
    let destination = server.post("/v1/destinations", policies).await.expect(201);
    let event = |n: usize| json!({"event_type": if n < FREED { "first.ones" } else { "a.b" }, "payload": n});
    for numbers in [0..1_000, 1_000..COUNT] {
        let events: Vec<Value> = numbers.map(event).collect();
        server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    }
    let dead = async || total(&server, "status=dead_letter").await;
    until(secs(60), "all are dead", async || dead().await == COUNT as u64).await;
    let pause = format!("/v1/destinations/{}/pause", destination["id"].as_str().expect("an id"));
    server.post(&pause, json!({})).await.expect(200);
    let job = server.post("/v1/replays", json!({"filter": {}, "max_per_minute": 600_000})).await.expect(202);
    let path = format!("/v1/replays/{}", job["id"].as_str().expect("a string"));
    let done =
        async |server: &Server| server.get(&path).await.expect(200)["done"].as_u64().expect("a number");
    until(secs(20), "no more may be open", async || done(&server).await == OPEN).await;
    server.kill9();
    server.restart().await;

    let withdraw = json!({"filter": {"event_type": "first.ones"}});
    let withdrawn = server.post("/v1/cancellations", withdraw).await.expect(202);
    assert_eq!(until_done(&server, "cancellations", &withdrawn).await["done"], FREED);
    let room = OPEN + FREED as u64;
    until(secs(60), "it goes on", async || done(&server).await >= room).await;
    assert_eq!(total(&server, "status=queued").await, OPEN);
    assert_eq!(done(&server).await, room);
}

/// Two nodes that know each other, the database that they share, and its URL; `None` where there is no PostgreSQL.
async fn two_nodes() -> Option<(Postgres, Server, Server)> {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return None;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let environment = [("TIDEGATE_DATABASE_URL", url.as_str()), ("TIDEGATE_SECRET_KEY", SECRET_KEY)];
    let first = Server::start_in(&environment, &["--node-name", "first"]).await;
    let second = Server::start_in(&environment, &["--node-name", "second"]).await;
    Some((postgres, first, second))
}

/// Goal: whoever stops a job may ask any node, and it does no more of its work.
/// Method: two slow jobs of each kind, on one node; one of both is stopped on the other node, at once; when the other has done
/// some more of its own work, the stopped one must have done none.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stopped_on_any_node() {
    let Some((_postgres, first, second)) = two_nodes().await else { return };
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let mut names = Vec::new();
    for event_type in ["stopped.one", "other.one"] {
        let body = json!({"url": receiver.url, "retry_policy": {"max_attempts": 1}, "event_types": [event_type],
            "circuit_breaker": {"enabled": false}});
        let destination = first.post("/v1/destinations", body).await.expect(201);
        names.push(destination["id"].as_str().expect("an id").to_owned());
    }
    let events: Vec<Value> = ["stopped.one", "other.one"]
        .into_iter()
        .flat_map(|event_type| vec![json!({"event_type": event_type, "payload": 1}); 60])
        .collect();
    let publish = async || {
        first.post("/v1/outbound-events/batch", json!({"events": events.clone()})).await.expect(202);
    };
    publish().await;
    until(secs(30), "all are dead", async || total(&first, "status=dead_letter").await == 120).await;
    for name in &names {
        first.post(&format!("/v1/destinations/{name}/pause"), json!({})).await.expect(200);
    }
    for (kind, made) in [("replays", "queued"), ("cancellations", "cancelled")] {
        if kind == "cancellations" {
            publish().await;
        }
        let begin = async |name: &String| {
            let body = json!({"filter": {"destination_id": name}, "max_per_minute": 120});
            let job = first.post(&format!("/v1/{kind}"), body).await.expect(202);
            format!("/v1/{kind}/{}", job["id"].as_str().expect("an id"))
        };
        let (stopped, other) = (begin(&names[0]).await, begin(&names[1]).await);
        let done = async |path: &str| first.get(path).await.expect(200)["done"].as_u64().expect("a number");
        let both = async || done(&stopped).await.min(done(&other).await);
        until(secs(20), "both have begun", async || both().await >= 2).await;
        assert_eq!(second.delete(&stopped).await.status, 204);
        let left = second.get(&stopped).await.expect(200);
        assert_eq!((&left["status"], left["finished_at"].is_string()), (&json!("stopped"), true), "{left}");
        let query = format!("status={made}&destination_id={}", names[0]);
        let (worked, so_far) = (total(&first, &query).await, done(&other).await);
        until(secs(30), "the other goes on", async || done(&other).await >= so_far + 5).await;
        assert_eq!(first.get(&stopped).await.expect(200), left);
        // What it was at when it was stopped may have been done.
        assert!(total(&first, &query).await <= worked + 2, "{kind} went on");
        assert_eq!(second.delete(&other).await.status, 204);
    }
    let lines = first.get("/v1/audit-log?limit=200").await.expect(200);
    let lines = lines["items"].as_array().expect("a list").iter();
    assert_eq!(
        lines.filter(|line| line["action"].as_str().is_some_and(|word| word.ends_with(".stop"))).count(),
        4
    );
}

/// Goal: a job begins with its line in the audit log, or not at all; and ends so.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_could_not_be_written_down_has_not_begun() {
    let Some((postgres, first, _second)) = two_nodes().await else { return };
    let sql = |text: &str| postgres.sql("postgres", text);
    let refuse = |action: &str| {
        sql(&format!(
            "alter table tidegate.audit_log add constraint refused check (action <> '{action}') not valid"
        ))
    };
    let allow = || sql("alter table tidegate.audit_log drop constraint refused");
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let destination = dead_letters(&first, &receiver, 20).await;
    let pause = format!("/v1/destinations/{}/pause", destination["id"].as_str().expect("an id"));
    first.post(&pause, json!({})).await.expect(200);
    let body = json!({"filter": {}, "max_per_minute": 60});
    refuse("replay.create");
    first.post("/v1/replays", body.clone()).await.expect_error(503, "store_unavailable");
    assert_eq!(first.get("/v1/replays").await.expect(200)["items"], json!([]));
    allow();
    let job = first.post("/v1/replays", body).await.expect(202);
    let path = format!("/v1/replays/{}", job["id"].as_str().expect("an id"));
    refuse("replay.stop");
    first.delete(&path).await.expect_error(503, "store_unavailable");
    let so_far = first.get(&path).await.expect(200);
    assert_eq!(so_far["status"], "running");
    until(secs(20), "it goes on", async || {
        first.get(&path).await.expect(200)["done"].as_u64() > so_far["done"].as_u64()
    })
    .await;
    allow();
    assert_eq!(first.delete(&path).await.status, 204);
    assert_eq!(first.get(&path).await.expect(200)["status"], "stopped");
}

#[tokio::test]
async fn a_cancellation_withdraws_what_waits() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = server.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("a string"));
    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    let event = |n: usize| json!({"event_type": if n < 300 { "a.b" } else { "c.d" }, "payload": n});
    let events: Vec<Value> = (0..320).map(event).collect();
    server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    let job = server.post("/v1/cancellations", json!({"filter": {"event_type": "a.b"}})).await.expect(202);
    let done = until_done(&server, "cancellations", &job).await;
    assert_eq!(done["done"], 300);
    assert_eq!(total(&server, "status=cancelled").await, 300);
    server.post(&format!("{path}/resume"), json!({})).await.expect(200);
    until(secs(20), "the others arrive", async || total(&server, "status=delivered").await == 20).await;
    assert_eq!(receiver.count(), 20);
}

#[tokio::test]
async fn a_job_without_a_filter_is_refused_and_an_empty_one_means_everything() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = server.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
    let pause = format!("/v1/destinations/{}/pause", destination["id"].as_str().expect("an id"));
    server.post(&pause, json!({})).await.expect(200);
    server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    for kind in ["replays", "cancellations"] {
        for body in [json!({}), json!({"dry_run": true}), json!({"filter": null})] {
            let refused = server.post(&format!("/v1/{kind}"), body).await.expect_error(422, "invalid_field");
            assert_eq!(refused["field"], "filter");
        }
    }
    assert_eq!(total(&server, "status=queued").await, 1);
    let job = server.post("/v1/cancellations", json!({"filter": {}})).await.expect(202);
    assert_eq!(until_done(&server, "cancellations", &job).await["done"], 1);
    assert_eq!(total(&server, "status=cancelled").await, 1);
}

/// Goal: a mass replay keeps to its destination's rate, as the receiver sees it, and others' live events do not wait for it.
/// Method: some hundreds of dead letters at once, behind a limit; meanwhile live events to somebody else, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_mass_replay_keeps_to_its_rate_and_delays_nobody_else() {
    const COUNT: usize = 300;
    const PER_SECOND: u32 = 50;
    const BURST: u32 = 20;
    /// A live event's whole way, on a busy machine: far less than the replay takes.
    const LIVE: Duration = secs(2);
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let destination = dead_letters(&server, &receiver, COUNT).await;
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("an id"));
    let limit = json!({"max": PER_SECOND, "per": "second", "burst_capacity": BURST});
    server.patch(&path, json!({"rate_limit": limit, "event_types": []})).await.expect(200);
    let other = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/destinations", json!({"url": other.url})).await.expect(201);
    receiver.behave(|_| Reply::status(200));

    let filter = json!({"destination_id": destination["id"], "status": "dead_letter"});
    let job = json!({"filter": filter, "max_per_minute": 600_000});
    let began = now();
    let job = server.post("/v1/replays", job).await.expect(202);
    let mut live = 0;
    while receiver.count() < 2 * COUNT {
        assert!(began.elapsed() < secs(60), "{} of {COUNT} were replayed", receiver.count() - COUNT);
        let published = now();
        server
            .post("/v1/outbound-events", json!({"event_type": "live.one", "payload": live}))
            .await
            .expect(202);
        live += 1;
        until(LIVE, "a live event arrives", async || other.count() == live).await;
        assert!(published.elapsed() < LIVE, "live event {live} took {:?}", published.elapsed());
    }
    let took = began.elapsed();
    assert_eq!(until_done(&server, "replays", &job).await["done"], COUNT);
    assert!(live >= 20, "{live} live events in {took:?}");
    let replayed = &receiver.received()[COUNT..];
    for (first, one) in replayed.iter().enumerate() {
        for (last, other) in replayed.iter().enumerate().skip(first) {
            // What is sent evenly comes in less so: so much, on a busy machine.
            let time = other.began_at.saturating_duration_since(one.began_at) + millis(500);
            let most = f64::from(BURST) + f64::from(PER_SECOND) * time.as_secs_f64();
            assert!((last - first + 1) as f64 <= most, "{} in {time:?}", last - first + 1);
        }
    }
    until(secs(20), "all are delivered", async || {
        total(&server, "status=delivered").await == (COUNT + live) as u64
    })
    .await;
}
