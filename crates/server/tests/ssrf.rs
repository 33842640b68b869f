//! Nobody reaches the network that the server stands in by naming it as a destination.
//!
//! The test runs a second time, in a network of its own where metadata and private addresses are those of the machine itself and
//! listen: whoever dials one of them is heard. That takes the right to make such a network; without it the test says so and ends.

mod kit;

#[path = "ssrf/canaries.rs"]
mod canaries;
#[path = "ssrf/names.rs"]
mod names;

use std::process::Command;

use canaries::Canaries;
use kit::{Client, Server, secs, until};
use names::Names;
use serde_json::{Value, json};

/// What must never be dialled.
const FORBIDDEN: &[&str] = &[
    "10.0.0.1",
    "10.255.255.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:a9fe:a9fe::1",
    "2001:db8::1",
    "fec0::1",
];
/// What may be.
const PUBLIC: &[&str] = &["93.184.215.14", "2606:4700::1111"];
/// Further spellings of hosts that stand for something within; all that parsers make of them is listed in the tests of `core`.
const SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "2130706433",
    "0",
    "0.0.0.0",
    "[::]",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[::10.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "１６９.254.169.254",
    "169。254。169。254",
    "169.254.43518",
    "%31%30.0.0.1",
    "10.1",
    "localhost",
    "LOCALHOST.",
    "ｌocalhost",
    "user@169.254.169.254",
    "@169.254.169.254",
    "93.184.215.14@169.254.169.254",
    "[fe80::1%25lo]",
    "169.254.169.254.",
];

#[test]
fn no_destination_reaches_the_network_within() {
    kit::in_own_namespace("--net", "no_destination_reaches_the_network_within", inside());
}

fn ip(arguments: &str) {
    let ran = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is there");
    assert!(ran.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a destination if it can be made, and publishes so many events for it. Says its id.
async fn aim(client: &Client, url: &str, events: usize) -> Option<String> {
    let body = json!({"url": url, "event_types": [], "retry_policy": {"max_attempts": 1}, "circuit_breaker": {"enabled": false}});
    let made = client.post("/v1/destinations", body).await;
    if made.status == 422 {
        assert_eq!(made.json["field"], "url", "{url}: {}", made.text());
        return None;
    }
    let id = made.expect(201)["id"].as_str().expect("an id").to_owned();
    for _ in 0..events {
        let event = json!({"event_type": "a.b", "payload": 1, "destination_ids": [id]});
        client.post("/v1/outbound-events", event).await.expect(202);
    }
    Some(id)
}

/// The outcomes of so many attempts, when they are there, the first one first.
async fn outcomes(client: &Client, id: &str, count: usize) -> Vec<Value> {
    let path = format!("/v1/destinations/{id}/attempts?limit=200");
    let mut found = Vec::new();
    until(secs(30), format!("{count} attempts of {id}"), async || {
        found = client.get(&path).await.expect(200)["items"].as_array().expect("a list").clone();
        found.len() >= count
    })
    .await;
    found.reverse();
    found
}

async fn inside() {
    ip("link set lo up");
    for address in FORBIDDEN.iter().chain(PUBLIC) {
        let length = if address.contains(':') { 128 } else { 32 };
        ip(&format!("addr add {address}/{length} dev lo"));
    }
    let canaries = Canaries::listen(&[80, 8_099]).await;
    let names = Names::start(
        "127.0.0.53",
        vec![
            ("public.example", vec![PUBLIC.to_vec()]),
            ("inside.example", vec![vec!["169.254.169.254"]]),
            ("inside6.example", vec![vec!["fd00:ec2::254"]]),
            ("mapped.example", vec![vec!["::ffff:10.0.0.1"]]),
            ("translated.example", vec![vec!["64:ff9b::a9fe:a9fe"]]),
            ("loopback.example", vec![vec!["127.0.0.1"]]),
            ("nowhere.example", vec![vec!["0.0.0.0"]]),
            ("mixed.example", vec![vec![PUBLIC[0], "10.0.0.1"]]),
            ("mixed6.example", vec![vec![PUBLIC[0], "fd00::1"]]),
            (
                "many.example",
                vec![vec![PUBLIC[0], PUBLIC[0], PUBLIC[0], PUBLIC[0], PUBLIC[0], "192.168.1.1"]],
            ),
            ("rebinding.example", vec![vec![PUBLIC[0]], vec!["169.254.169.254"]]),
        ],
    )
    .await;
    let server = Server::start_guarded(&["--name-servers", "127.0.0.53"]).await;

    // What is public is reached, so that silence elsewhere means something.
    for host in ["public.example", PUBLIC[0], "[2606:4700::1111]"] {
        let id = aim(&server, &format!("http://{host}/hook"), 1).await.expect("it is public");
        assert_eq!(outcomes(&server, &id, 1).await[0]["outcome"], "success", "{host}");
    }
    assert!(canaries.at(PUBLIC[0]) >= 2 && canaries.at(PUBLIC[1]) >= 1, "the canaries hear");

    // An address is refused when it is written, however it is spelt; a name when it is resolved.
    let bracketed = |address: &&str| match address.contains(':') {
        true => format!("[{address}]"),
        false => (*address).to_owned(),
    };
    for host in FORBIDDEN.iter().map(bracketed).chain(SPELLINGS.iter().map(|host| (*host).to_owned())) {
        for port in ["", ":8099"] {
            let id = aim(&server, &format!("http://{host}{port}/"), 1).await;
            assert_eq!(id.is_some(), host.to_lowercase().contains("ocalhost"), "{host}");
            if let Some(id) = id {
                assert_eq!(outcomes(&server, &id, 1).await[0]["outcome"], "blocked", "{host}");
            }
        }
    }
    for name in
        ["inside", "inside6", "mapped", "translated", "loopback", "nowhere", "mixed", "mixed6", "many"]
    {
        let id =
            aim(&server, &format!("http://{name}.example:8099/"), 1).await.expect("a name may be written");
        let attempt = &outcomes(&server, &id, 1).await[0];
        assert_eq!(
            (&attempt["outcome"], &attempt["error"]),
            (&json!("blocked"), &json!("address not allowed")),
            "{name}"
        );
        assert_eq!(attempt["status_code"], Value::Null, "nothing of the target is shown");
        // The way around by a test event is none.
        let tested = server.post(&format!("/v1/destinations/{id}/test"), json!({})).await.expect(200);
        assert_eq!(tested["outcome"], "blocked", "{name}: {tested}");
    }

    // A destination that was good is judged again when it is changed, and when it leads away.
    let good = aim(&server, "http://public.example/away", 1).await.expect("a name may be written");
    let redirected = &outcomes(&server, &good, 1).await[0];
    assert_eq!((&redirected["outcome"], &redirected["status_code"]), (&json!("redirect"), &json!(307)));
    let path = format!("/v1/destinations/{good}");
    server.patch(&path, json!({"url": "http://169.254.169.254/"})).await.expect_error(422, "invalid_field");

    // A name that is public when it is looked at and another the next time: each connection goes where the look went.
    let (asked, reached) = (names.asked(), canaries.at(PUBLIC[0]));
    let id = aim(&server, "http://rebinding.example:8099/", 20).await.expect("a name may be written");
    let all = outcomes(&server, &id, 20).await;
    let count = |word: &str| all.iter().filter(|attempt| attempt["outcome"] == word).count();
    let (good, blocked) = (count("success"), count("blocked"));
    assert_eq!(good + blocked, 20, "{all:?}");
    assert!(good >= 5 && blocked >= 5, "it was asked anew each time: {good} and {blocked}");
    assert_eq!(canaries.at(PUBLIC[0]), reached + good);
    assert!(names.asked() >= asked + 20);

    // Its own API is no destination, either.
    let itself = format!("{}/v1/outbound-events", server.base_url);
    assert_eq!(aim(&server, &itself, 1).await, None);

    let heard = canaries.elsewhere(PUBLIC);
    assert!(heard.is_empty(), "connections that nobody may make: {heard:?}");
}
