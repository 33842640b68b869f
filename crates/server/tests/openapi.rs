//! The OpenAPI document and the server say the same: every route is in it, and a fuzzer that reads it finds no answer
//! that it does not allow.

mod kit;
#[path = "interop/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::process::{Command, Output};

use kit::{Receiver, Reply, Server};
use serde_json::Value;

/// Every route of the API: the path, then its methods. Names of parameters are the document's own business.
const ROUTES: &str = "
    /v1/accounts                             get post
    /v1/accounts/{}                          get patch delete
    /v1/api-keys                             get post
    /v1/api-keys/{}                          delete
    /v1/outbound-events                      get post
    /v1/outbound-events/batch                post
    /v1/outbound-events/{}                   get
    /v1/outbound-events/{}/replay            post
    /v1/outbound-events/{}/cancel            post
    /v1/destinations                         get post
    /v1/destinations/{}                      get patch delete
    /v1/destinations/{}/pause                post
    /v1/destinations/{}/resume               post
    /v1/destinations/{}/retry-now            post
    /v1/destinations/{}/test                 post
    /v1/destinations/{}/rotate-secret        post
    /v1/destinations/{}/latency              get
    /v1/destinations/{}/forecast             get
    /v1/destinations/{}/preview              post
    /v1/destinations/{}/holds                get
    /v1/destinations/{}/notices              get
    /v1/destinations/{}/attempts             get
    /v1/settings                             get patch
    /v1/audit-log                            get
    /v1/schedules/preview                    post
    /v1/routes                               get post
    /v1/routes/{}                            delete
    /v1/event-types                          get
    /v1/event-types/{}                       get put delete
    /v1/deliveries                           get
    /v1/deliveries/{}                        get
    /v1/deliveries/{}/replay                 post
    /v1/deliveries/{}/cancel                 post
    /v1/deliveries/{}/retry-now              post
    /v1/deliveries/{}/explain                get
    /v1/replays                              post
    /v1/replays/{}                           get delete
    /v1/cancellations                        post
    /v1/stats                                get
    /v1/stats/ended                          get
    /v1/stream                               get
    /v1/nodes                                get
    /healthz                                 get
    /readyz                                  get
    /metrics                                 get
";

/// Requests for each operation and phase. A longer search: `XTASK_FUZZ_EXAMPLES=500`.
const EXAMPLES: &str = "20";
/// The same requests in each run; a longer search takes another by `XTASK_FUZZ_SEED`.
const SEED: &str = "1";

/// `get /v1/accounts/{}` for each operation of the document.
fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let operations = paths.flat_map(|(path, methods)| {
        let path = without_names(path);
        methods.as_object().expect("methods").keys().map(move |method| format!("{method} {path}"))
    });
    operations.collect()
}

fn without_names(path: &str) -> String {
    let parameter = |segment: &str| segment.starts_with('{');
    let segments = path.split('/').map(|segment| if parameter(segment) { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn the_document_is_openapi_3_1_and_has_every_route() {
    let server = Server::start(&[]).await;
    let answer = server.get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let document = answer.json;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")), "{document}");
    let there = operations(&document);
    let wanted: BTreeSet<String> = ROUTES
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .flat_map(|(path, methods)| methods.split_whitespace().map(move |method| format!("{method} {path}")))
        .collect();
    let missing: Vec<_> = wanted.difference(&there).collect();
    assert!(missing.is_empty(), "not in the document: {missing:?}");
}

#[tokio::test]
async fn the_document_says_what_the_server_takes() {
    let server = Server::start(&[]).await;
    let document = server.get("/openapi.json").await.json;
    let schemas = &document["components"]["schemas"];
    let properties = |name: &str| schemas[name]["properties"].clone();
    assert_eq!(properties("JobRequest")["dry_run"]["type"], "boolean");
    assert_eq!(schemas["JobRequest"]["required"], serde_json::json!(["filter"]));
    assert!(properties("EventTypeBody")["event_type"].is_object());
    assert_eq!(properties("DestinationPatch")["signing_secret"]["type"], "string", "null is refused");
    for name in ["rate_limit", "retry_policy", "delivery_schedule", "delivery_schedules", "max_age_seconds"] {
        assert!(properties("Defaults")[name].is_object(), "{name}: {}", schemas["Defaults"]);
    }
    for view in ["SettingsView", "SettingsPatch"] {
        let defaults = properties(view)["defaults"].to_string();
        assert!(defaults.contains("#/components/schemas/Defaults"), "{view}: {defaults}");
    }
    let parameters = |path: &str, method: &str| -> BTreeSet<String> {
        let all = document["paths"][path][method]["parameters"].as_array().cloned().unwrap_or_default();
        all.iter().map(|parameter| parameter["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    for path in [
        "accounts",
        "api-keys",
        "audit-log",
        "nodes",
        "replays",
        "cancellations",
        "destinations/{id}/attempts",
        "destinations/{id}/holds",
        "destinations/{id}/notices",
    ] {
        let there = parameters(&format!("/v1/{path}"), "get");
        assert!(["limit", "cursor", "total"].iter().all(|name| there.contains(*name)), "{path}: {there:?}");
    }
    assert!(parameters("/v1/accounts/{id}", "delete").contains("If-Match"));
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let named = parameters(path, method).contains("Tidegate-Account");
            assert_eq!(named, path.starts_with("/v1/"), "{method} {path}");
        }
    }
}

/// Goal: no request, right or wrong, gets a 5xx or an answer that the document does not allow.
/// Method: schemathesis makes requests out of the document, for each operation and for chains of them, with the operator's
/// key. Webhooks go to a receiver of the test.
#[tokio::test(flavor = "multi_thread")]
async fn a_fuzzer_finds_no_answer_outside_the_document() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let mut fuzzer = fuzzer(&server, &receiver);
    let run = tokio::task::spawn_blocking(move || fuzzer.output()).await.expect("it does not panic");
    let Output { status, stdout, stderr } = run.expect("schemathesis starts");
    assert!(
        status.success(),
        "schemathesis ended with {status}:\n{}\n{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    assert_eq!(server.get("/readyz").await.status, 200, "it is well afterwards");
}

fn fuzzer(server: &Server, receiver: &Receiver) -> Command {
    let setting = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let mut fuzzer = Command::new(tools::python());
    // What it remembers between runs would make them differ, so it gets no place to do so.
    fuzzer.current_dir(server.data_dir.parent().expect("the home of the server"));
    fuzzer.env("SCHEMATHESIS_HOOKS", tools::file("hooks.py"));
    fuzzer.env("XTASK_FUZZ_RECEIVER", receiver.url.trim_start_matches("http://"));
    fuzzer.args(["-m", "schemathesis.cli", "--config-file"]).arg(tools::file("schemathesis.toml"));
    fuzzer.args(["run", "--no-color", "--generation-database", "none"]);
    fuzzer.args(["--max-examples", &setting("XTASK_FUZZ_EXAMPLES", EXAMPLES)]);
    fuzzer.args(["--seed", &setting("XTASK_FUZZ_SEED", SEED)]);
    fuzzer.args(["--request-timeout", "10", "--continue-on-failure", "--no-shrink"]);
    // A stream of events has no end to wait for.
    fuzzer.args(["--exclude-path", "/v1/stream"]);
    fuzzer.args(["--header", &format!("Authorization: Bearer {}", server.key)]);
    fuzzer.arg(format!("{}/openapi.json", server.base_url));
    fuzzer
}
