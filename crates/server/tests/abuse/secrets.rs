//! Secrets as canaries: put in by every door, and looked for wherever anything comes out.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::accounts::{operations, with_id};
use super::kit::{Answer, Client, Postgres, Receiver, Reply, Server, secs, until};

/// What is told to nobody.
pub(crate) const SIGNING: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5";
pub(crate) const SIGNING_BYTES: &str = "canary-canary-canary-canary";
pub(crate) const TOKEN: &str = "canary-token-5f1d";
const VALUE: &str = "canary-value-77aa";
/// One that replaces [`SIGNING`].
const NEXT: &str = "whsec_Y2FuYXJ5LXR3by1jYW5hcnktdHdvLWNhbmFyeQ==";
/// The value of a header of one's own. It is shown with its destination, and nowhere else.
pub(crate) const HEADER: &str = "canary-header-d40e";
/// Stands in a URL: likewise.
pub(crate) const IN_URL: &str = "canary-in-url-0b3c";
/// What is no secret to those who may see the destination.
const SHOWN: &[&str] = &[HEADER, IN_URL];

/// Something that the server said or wrote.
struct Said {
    place: String,
    bytes: Vec<u8>,
    /// What may stand there all the same.
    may_tell: Vec<String>,
}

impl Said {
    fn new(place: impl Into<String>, bytes: impl Into<Vec<u8>>, may_tell: &[&str]) -> Self {
        let may_tell = may_tell.iter().map(|text| (*text).to_owned()).collect();
        Self { place: place.into(), bytes: bytes.into(), may_tell }
    }

    fn tells(&self, bytes: &[u8]) -> bool {
        self.bytes.windows(bytes.len()).any(|window| window == bytes)
    }
}

/// Goal: secrets are told to nobody: neither by logs at their most talkative, metrics, answers and pages, nor by the store.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_nowhere_to_be_read() {
    let mut server = Server::start(&["--log-level", "trace"]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let url = format!("{}/{IN_URL}?token={IN_URL}", receiver.url);
    let bearer = json!({"url": url, "external_id": "b", "signing_secret": SIGNING, "auth_config": {"type": "bearer", "token": TOKEN}, "custom_headers": {"x-own": HEADER}});
    let header = json!({"url": url, "external_id": "h", "auth_config": {"type": "header", "name": "x-api-key", "value": VALUE}});
    let mut said = Vec::new();
    let mut note = |place: &str, status: u16, answer: Answer, may_tell: &[&str]| {
        assert_eq!(answer.status, status, "{place}: {}", answer.text());
        said.push(Said::new(place, answer.bytes.to_vec(), may_tell));
        answer.json["data"].clone()
    };
    let text = |made: &Value, field: &str| made[field].as_str().expect("it is told once").to_owned();

    note("POST b", 201, server.post("/v1/destinations", bearer).await, SHOWN);
    let made = server.post("/v1/destinations", header).await;
    let generated = text(&made.json["data"], "signing_secret");
    note("POST h", 201, made, &[IN_URL, &generated]);
    let turned = server.post("/v1/destinations/h/rotate-secret", json!({})).await;
    let rotated = text(&turned.json["data"], "signing_secret");
    note("rotate-secret", 200, turned, &[&rotated]);
    let given = server.post("/v1/destinations/b/rotate-secret", json!({"signing_secret": NEXT})).await;
    note("rotate-secret to a given one", 200, given, &[]);
    let key = server.post("/v1/api-keys", json!({"name": "k", "role": "editor"})).await;
    let (key, key_id) = (text(&key.json["data"], "api_key"), text(&key.json["data"], "id"));
    let event = json!({"event_type": "a.b", "payload": 1});
    let event = server.with_key(&key).post("/v1/outbound-events", event).await;
    let event = text(&note("publish", 202, event, &[]), "id");
    note("test", 200, server.post("/v1/destinations/b/test", json!({})).await, &[]);
    let change = json!({"max_concurrency": 3, "auth_config": {"type": "bearer", "token": TOKEN}});
    note("PATCH", 200, server.patch("/v1/destinations/b", change).await, SHOWN);
    let change = json!({"custom_headers": {"x-own": HEADER}, "signing_secret": SIGNING});
    note("PATCH of secrets", 200, server.patch("/v1/destinations/b", change).await, SHOWN);
    for (method, path, body) in refusable(&url) {
        let kind = Some("application/json");
        let refused = server.try_send(method, path, kind, body.clone()).await.expect("an answer");
        let place = format!("the refusal of {}", String::from_utf8_lossy(&body));
        let status = if serde_json::from_slice::<Value>(&body).is_ok() { 422 } else { 400 };
        note(&place, status, refused, &[]);
    }
    let ended = server.post("/v1/api-keys", json!({"name": "ended", "role": "editor"})).await.expect(201);
    let revoked = text(&ended, "api_key");
    server.delete(&format!("/v1/api-keys/{}", text(&ended, "id"))).await.expect(204);
    for refused in [format!("{key}x"), revoked.clone(), TOKEN.to_owned()] {
        note("401", 401, server.with_key(&refused).get("/v1/stats").await, &[]);
        note("401 of a stream", 401, server.with_key(&refused).get("/v1/stream").await, &[]);
    }
    until(secs(20), "both were tried", async || receiver.count() >= 3).await;
    let got = |name: &str, value: &str| receiver.received().iter().any(|one| one.header(name) == Some(value));
    assert!(got("authorization", &format!("Bearer {TOKEN}")) && got("x-api-key", VALUE));
    assert!(got("x-own", HEADER));

    let deliveries = server.get(&format!("/v1/deliveries?event_id={event}")).await.expect(200);
    let delivery = text(&deliveries["items"][0], "id");
    said.push(Said::new("the metrics", server.get("/metrics").await.bytes.to_vec(), &[]));
    let ids = [
        ("/v1/destinations/", "b"),
        ("/v1/outbound-events/", event.as_str()),
        ("/v1/deliveries/", delivery.as_str()),
        ("/v1/api-keys/", key_id.as_str()),
    ];
    let document = server.get("/openapi.json").await.json;
    for (_, path) in
        operations(&document).into_iter().filter(|(method, path)| method == "get" && path != "/v1/stream")
    {
        let id = ids.iter().find(|(collection, _)| path.starts_with(collection)).map_or("x", |(_, id)| id);
        let path = with_id(&path, id);
        let may_tell = if path.ends_with("/requests") { SHOWN } else { may_tell(&path, "/v1/destinations") };
        said.push(Said::new(&path, server.get(&path).await.bytes.to_vec(), may_tell));
    }
    let browser = sign_in(&server).await;
    let event_page = format!("/events/{event}");
    for page in [
        "/",
        "/destinations",
        "/destinations/b",
        "/destinations/b/edit",
        "/destinations/h",
        "/log",
        "/dead-letters",
        "/settings",
        "/event-types",
        &event_page,
    ] {
        let answer = browser.get(page).await;
        assert_eq!(answer.status, 200, "{page}: {}", answer.text());
        let may_tell = if page == event_page { SHOWN } else { may_tell(page, "/destinations") };
        said.push(Said::new(page, answer.bytes.to_vec(), may_tell));
    }
    assert!(server.stop().await);
    said.push(Said::new("the log", server.log(), &[]));
    for file in std::fs::read_dir(&server.data_dir).expect("the data") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("it can be read");
        said.push(Said::new(path.display().to_string(), bytes, SHOWN));
    }
    said.extend(server.database_url().map(|url| Said::new("the database", Postgres::dump(url), SHOWN)));

    let texts = [
        SIGNING,
        SIGNING_BYTES,
        NEXT,
        TOKEN,
        VALUE,
        HEADER,
        IN_URL,
        &generated,
        &rotated,
        &key,
        &revoked,
        &server.key,
    ];
    let mut told = BTreeSet::new();
    for canary in texts {
        for one in said.iter().filter(|one| !one.may_tell.iter().any(|text| text == canary)) {
            told.extend(forms(canary).iter().any(|form| one.tells(form)).then_some((&one.place, canary)));
        }
    }
    assert!(told.is_empty(), "{told:#?}");
    assert!(said.len() > 60, "{}", said.len());
    let kept = server.database_url().map_or("tidegate.db", |_| "the database");
    let kept = |one: &&Said| one.place.contains(kept);
    for clear in SHOWN {
        assert!(said.iter().filter(kept).any(|one| one.tells(clear.as_bytes())), "{clear} is in the store");
        let found = said.iter().filter(|one| one.tells(clear.as_bytes())).count();
        assert!(found >= 5, "{clear} is no secret, and must be found where it is looked for: {found}");
    }
}

/// A destination's own headers are shown with it alone; where it lies, in many places.
fn may_tell(path: &str, of_destinations: &str) -> &'static [&'static str] {
    if path.starts_with(of_destinations) { SHOWN } else { &[IN_URL] }
}

/// Requests with something wrong in them, and a secret.
fn refusable(url: &str) -> Vec<(Method, &'static str, Bytes)> {
    let header = |value: Value| json!({"type": "header", "name": "x-api-key", "value": value});
    let wrong = [
        json!({"auth_config": {"type": "bearer", "token": format!("{TOKEN}\n")}}),
        json!({"auth_config": {"type": "bearer", "token": [TOKEN]}}),
        json!({"auth_config": {"type": "bearer", "token": TOKEN, "more": 1}}),
        json!({"auth_config": {"type": "basic", "token": TOKEN}}),
        json!({"auth_config": TOKEN}),
        json!({"auth_config": [TOKEN]}),
        json!({"auth_config": header(json!(format!("{VALUE}\r\nx: y")))}),
        json!({"auth_config": header(json!({"is": VALUE}))}),
        json!({"auth_config": {"type": "header", "name": "x y", "value": VALUE}}),
        json!({"signing_secret": format!("{SIGNING}!")}),
        json!({"signing_secret": SIGNING_BYTES}),
        json!({"signing_secret": [SIGNING]}),
        json!({"signing_secret": {"is": SIGNING}}),
        json!({"signing_secret": SIGNING, "max_concurrency": 0}),
        json!({"auth_config": {"type": "bearer", "token": TOKEN}, "no_such": 1}),
        json!({"custom_headers": {"x-own": format!("{HEADER}\n")}}),
        json!({"custom_headers": {"x-own": [HEADER]}}),
        json!({"custom_headers": {"host": HEADER}}),
        json!({"custom_headers": HEADER}),
        json!({"custom_headers": [HEADER]}),
        json!({"url": format!("http://u:{TOKEN}@example.com/")}),
    ];
    let mut all = Vec::new();
    for fields in wrong {
        let mut body = json!({"url": url});
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        all.push((Method::POST, "/v1/destinations", Bytes::from(body.to_string())));
        all.push((Method::PATCH, "/v1/destinations/b", Bytes::from(fields.to_string())));
    }
    for fields in [json!({"signing_secret": format!("{SIGNING}!")}), json!({"signing_secret": [SIGNING]})] {
        all.push((Method::POST, "/v1/destinations/b/rotate-secret", Bytes::from(fields.to_string())));
    }
    let cut = format!(r#"{{"signing_secret": "{SIGNING}", "auth_config": {{"token": "{TOKEN}"#);
    all.push((Method::POST, "/v1/destinations", Bytes::from(cut)));
    all
}

/// The bytes by which a canary is known: its text, and what the text of a signing secret stands for; each also in the digits by
/// which a database shows bytes.
fn forms(canary: &str) -> Vec<Vec<u8>> {
    let text = canary.trim_start_matches("whsec_");
    let mut forms = vec![text.as_bytes().to_vec()];
    if text != canary {
        forms.push(STANDARD.decode(text).expect("base64"));
    }
    let digits = |form: &Vec<u8>| form.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown: Vec<_> = forms.iter().map(|form| digits(form).into_bytes()).collect();
    [forms, shown].concat()
}

async fn sign_in(server: &Server) -> Client {
    let bare = Client::new(&server.base_url, "");
    let form = Bytes::from(format!("key={}", server.key));
    let kind = Some("application/x-www-form-urlencoded");
    let entered = bare.try_send(Method::POST, "/sign-in", kind, form).await.expect("an answer");
    let cookie =
        entered.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    bare.with_header("cookie", &cookie)
}
