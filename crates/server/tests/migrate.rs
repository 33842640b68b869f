//! From SQLite to PostgreSQL with the real binary: the server on the target answers as the one on the source did, and goes on
//! where that ended. Without PostgreSQL there is nothing to test.

mod kit;

#[path = "migrate/answers.rs"]
mod answers;

use std::process::{Command, Output, Stdio};

use kit::{Client, Postgres, Receiver, Reply, Server, secs, until};
use serde_json::{Value, json};

/// A target, and how to reach it.
struct Target {
    postgres: Postgres,
    url: String,
}

impl Target {
    fn start() -> Option<Self> {
        let Some(programs) = Postgres::programs() else {
            kit::skip(kit::NO_POSTGRES);
            return None;
        };
        let postgres = Postgres::start(&programs);
        postgres.sql("postgres", "create database tidegate");
        let url = format!("postgres://postgres@127.0.0.1:{}/tidegate?sslmode=disable", postgres.port);
        Some(Self { postgres, url })
    }

    fn migrate(&self, server: &Server) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let from = format!("sqlite:{}", server.data_dir.display());
        command.args(["migrate", "--from", &from]).env("TIDEGATE_DATABASE_URL", &self.url);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn make(client: &Client, name: &str, url: &str, policies: Value) -> String {
    let mut body = policies;
    (body["name"], body["url"], body["event_types"]) =
        (json!(name), json!(url), json!([format!("{name}.*")]));
    let made = client.post("/v1/destinations", body).await.expect(201);
    format!("/v1/destinations/{}", made["id"].as_str().expect("a string"))
}

async fn publish(client: &Client, name: &str, number: u64, more: Value) -> Value {
    let mut body = json!({"event_type": format!("{name}.made"), "payload": {"n": number}});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    client.post("/v1/outbound-events", body).await.expect(202)
}

fn numbers(receiver: &Receiver) -> Vec<u64> {
    let number = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("JSON")["n"].as_u64();
    receiver.received().iter().map(|received| number(&received.body).expect("a number")).collect()
}

/// The receivers of the world: each stands for one state in which deliveries are when the server stops.
struct World {
    /// Everything arrives, but what is scheduled for later.
    well: Receiver,
    /// Paused, and in order.
    paused: Receiver,
    /// Answers 500: waits for its retry.
    broken: Receiver,
    /// One an hour: one was sent, the others wait for a token.
    limited: Receiver,
    /// The path of the one that is paused.
    pause: String,
    /// What was answered under an idempotency key, and to an external id.
    keyed: Value,
    named: Value,
}

impl World {
    async fn build(server: &Server) -> Self {
        let ok = |_: &kit::Received| Reply::status(200);
        let (well, paused, limited) =
            (Receiver::start(ok).await, Receiver::start(ok).await, Receiver::start(ok).await);
        let broken = Receiver::start(|_| Reply::status(500).body("no")).await;
        make(server, "well", &well.url, json!({})).await;
        make(server, "broken", &broken.url, json!({"retry_policy": {"delays_seconds": [3600]}})).await;
        let hourly = json!({"rate_limit": {"max": 1, "per": "hour", "burst_capacity": 1}});
        make(server, "limited", &limited.url, hourly).await;
        let in_order = json!({"ordering": "key", "max_concurrency": 5});
        let pause = make(server, "paused", &paused.url, in_order).await;
        server.post(&format!("{pause}/pause"), json!({})).await.expect(200);
        server.put("/v1/event-types/well.*", json!({"priority": 2})).await.expect(201);
        for number in 0..5 {
            publish(server, "well", number, json!({})).await;
            publish(server, "paused", number, json!({"ordering_key": "k"})).await;
            publish(server, "limited", number, json!({})).await;
        }
        publish(server, "broken", 0, json!({})).await;
        let tomorrow = (kit::wall() + secs(86_400)).to_string();
        publish(server, "well", 77, json!({"deliver_at": tomorrow})).await;
        let named = publish_named(server).await;
        let keyed = publish_keyed(server).await;
        let withdrawn = publish(server, "paused", 99, json!({})).await;
        let cancel = format!("/v1/outbound-events/{}/cancel", withdrawn["id"].as_str().expect("a string"));
        server.post(&cancel, json!({})).await.expect(200);
        let world = Self { well, paused, broken, limited, pause, keyed, named };
        until(secs(20), "all that can go has gone", async || world.counts() == [7, 0, 1, 1]).await;
        world
    }

    fn counts(&self) -> [usize; 4] {
        [&self.well, &self.paused, &self.broken, &self.limited].map(Receiver::count)
    }
}

async fn publish_keyed(client: &Client) -> Value {
    publish(&client.with_header("idempotency-key", "once"), "well", 6, json!({})).await
}

async fn publish_named(client: &Client) -> Value {
    publish(client, "well", 5, json!({"external_event_id": "order-5"})).await
}

/// Goal: the move is not noticed by those who call the API, nor by those who receive.
/// Method: deliveries in every state; stop, move (killed once on the way), start on the target, compare all answers, go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_goes_on_where_the_other_ended() {
    let Some(target) = Target::start() else { return };
    let mut source = Server::start(&[]).await;
    let world = World::build(&source).await;
    let refused = target.migrate(&source).output().expect("it starts");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("a server is running on the source"), "{}", said(&refused));

    answers::until_settled(&source).await;
    let before = answers::all(&source).await;
    assert!(source.stop().await);
    let mut killed = target.migrate(&source).spawn().expect("it starts");
    until(secs(20), "it has begun", async || {
        let begun = "select count(*) from pg_tables where schemaname = 'tidegate' and tablename = 'marks'";
        target.postgres.sql("tidegate", begun).trim() == "1"
    })
    .await;
    killed.kill().expect("it is our child");
    killed.wait().expect("it is our child");
    let moved = target.migrate(&source).output().expect("it starts");
    assert!(moved.status.success(), "{}", said(&moved));
    assert!(said(&moved).contains("secret.key"), "{}", said(&moved));
    let again = target.migrate(&source).arg("--verify-only").output().expect("it starts");
    assert!(again.status.success() && said(&again).contains("the same on both sides"), "{}", said(&again));

    let key = source.data_dir.join("secret.key").display().to_string();
    let server = Server::start(&["--database-url", &target.url, "--secret-key-file", &key]).await;
    until(secs(30), "it has all slots", async || answers::has_all_slots(&server).await).await;
    until(secs(30), "it has read what waits", async || answers::knows_what_waits(&server).await).await;
    answers::assert_same(&before, &answers::all(&server).await);
    assert_eq!(world.counts(), [7, 0, 1, 1], "nothing is sent again, and no bound is forgotten");
    assert_eq!(publish_keyed(&server).await["id"], world.keyed["id"], "a key is known");
    let named = publish_named(&server).await;
    assert_eq!((&named["id"], &named["duplicate"]), (&world.named["id"], &json!(true)));

    publish(&server, "well", 8, json!({})).await;
    publish(&server, "paused", 5, json!({"ordering_key": "k"})).await;
    server.post(&format!("{}/resume", world.pause), json!({})).await.expect(200);
    until(secs(20), "what waited arrives", async || world.paused.count() == 6 && world.well.count() == 8)
        .await;
    assert_eq!(numbers(&world.paused), [0, 1, 2, 3, 4, 5], "in its order");
    assert_eq!(world.counts(), [8, 6, 1, 1]);

    let another = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let stranger = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--database-url", &target.url, "--data-dir"])
        .arg(&source.data_dir)
        .env("TIDEGATE_SECRET_KEY", another)
        .output()
        .expect("it starts");
    assert!(!stranger.status.success() && said(&stranger).contains("key"), "{}", said(&stranger));
}

/// Goal: whoever mistypes something is told what is right.
#[test]
fn what_cannot_be_moved_is_said() {
    for (arguments, words) in [
        (["migrate", "--from", "./data", "--to", "postgres://nowhere"], "sqlite:"),
        (
            ["migrate", "--from", "sqlite:/proc/none", "--to", "postgres://nowhere"],
            "is this the data directory?",
        ),
        (["migrate", "--from", "sqlite:/proc", "--to", "mysql://user:geheim@db"], "postgres://"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_tidegate")).args(arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(words) && !said(&output).contains("geheim"), "{}", said(&output));
    }
}
