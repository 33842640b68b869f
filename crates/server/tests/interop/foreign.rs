//! Receivers in other languages, as child processes: they verify with the libraries that their users have.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kit::{Client, secs, until};
use crate::tools;

/// What a receiver says about one webhook.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// `webhook-id`.
    pub(crate) id: String,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// For each secret of its destination, whether the library verified it.
    pub(crate) verified: Vec<bool>,
    /// Which changes to the message went unnoticed.
    pub(crate) fooled_by: Vec<String>,
}

/// A running receiver. It ends when it is dropped.
pub(crate) struct Foreign {
    pub(crate) language: &'static str,
    client: Client,
    child: Child,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Foreign {
    /// One in Python.
    pub(crate) fn python() -> Self {
        Self::start("Python", Command::new(tools::python()).arg(tools::file("receiver.py")))
    }

    /// One in JavaScript.
    pub(crate) fn javascript() -> Self {
        let mut node = Command::new("node");
        node.env("NODE_PATH", tools::node_modules()).arg(tools::file("receiver.js"));
        Self::start("JavaScript", &mut node)
    }

    /// Starts it and waits for its first line, the port. What it complains about goes to the output of the test.
    fn start(language: &'static str, command: &mut Command) -> Self {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child =
            started.unwrap_or_else(|error| panic!("{command:?}: {error}; run `cargo xtask test`"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it is text");
        let port: u16 = line.trim().parse().unwrap_or_else(|_| panic!("{command:?} ended before it served"));
        Self { language, client: Client::new(&format!("http://127.0.0.1:{port}"), "none"), child }
    }

    /// Where a destination of this name gets its webhooks.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.client.authority)
    }

    /// From now on it tries these secrets for this destination.
    pub(crate) async fn trust(&self, name: &str, secrets: &[&str]) {
        self.client.put(&format!("/secrets/{name}"), json!(secrets)).await.expect(204);
    }

    /// Waits until so many webhooks came in for this destination, and gives them in that order.
    pub(crate) async fn arrivals(&self, name: &str, count: usize) -> Vec<Arrival> {
        let what = format!("{} gets {count} webhooks at /{name}", self.language);
        until(secs(20), what, async || self.arrived(name).await.len() >= count).await;
        self.arrived(name).await
    }

    async fn arrived(&self, name: &str) -> Vec<Arrival> {
        let all = self.client.get("/received").await.expect(200);
        let all = all.as_array().expect("a list").iter();
        all.filter(|one| one["path"] == format!("/{name}")).map(arrival).collect()
    }
}

fn arrival(one: &Value) -> Arrival {
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let list = |field: &str| one[field].as_array().expect("a list").clone();
    Arrival {
        id: text("id"),
        content_type: text("content_type"),
        body: STANDARD.decode(text("body")).expect("base64"),
        verified: list("verified").iter().map(|one| one == true).collect(),
        fooled_by: list("fooled_by").iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect(),
    }
}
