//! Calls of the server's API and of the sink's controls, for all that is not measured itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::sink::Stats;
use crate::stopwatch::now;
use crate::wire::Wire;

/// A connection that was not used for so long is made anew: the server closes those that rest.
const RESTED: Duration = Duration::from_secs(5);

/// One keep-alive connection with a key.
pub(crate) struct Api {
    wire: Wire,
    used: Instant,
    address: String,
    key: String,
}

impl Api {
    pub(crate) async fn connect(address: &str, key: &str) -> Result<Self> {
        let wire = Wire::connect(address).await?;
        Ok(Self { wire, used: now(), address: address.to_owned(), key: key.to_owned() })
    }

    /// Any call: status and text.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            self.key,
            body.len()
        );
        if self.used.elapsed() > RESTED {
            self.wire = Wire::connect(&self.address).await?;
        }
        self.wire.write(request.as_bytes()).await?;
        let answer =
            self.wire.read().await?.with_context(|| format!("{method} {path}: closed without an answer"))?;
        self.used = now();
        let text = String::from_utf8_lossy(self.wire.body(&answer)).into_owned();
        Ok((self.wire.status(&answer), text))
    }

    /// A call that must succeed: what is under `data`.
    pub(crate) async fn must(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.call(method, path, &body).await?;
        ensure!((200..300).contains(&status), "{method} {path} was answered {status}: {text}");
        let mut json: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(json.get_mut("data").map(Value::take).unwrap_or(json))
    }

    /// Makes a destination and gives its id.
    pub(crate) async fn destination(&mut self, url: &str, event_type: &str, extra: &Value) -> Result<String> {
        let mut body =
            json!({"name": event_type, "url": url, "event_types": [event_type], "max_concurrency": 64});
        for (name, value) in extra.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let made = self.must("POST", "/v1/destinations", &body).await?;
        Ok(made["id"].as_str().context("a destination has an id")?.to_owned())
    }

    /// The sum of all samples of a metric.
    pub(crate) async fn metric(&mut self, name: &str) -> Result<Option<f64>> {
        let (_, text) = self.call("GET", "/metrics", "").await?;
        let samples = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            (rest.starts_with(' ') || rest.starts_with('{'))
                .then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
        });
        Ok(samples.reduce(|sum, sample| sum + sample))
    }
}

/// The sink forgets what it received. So many destinations get each event from now on.
pub(crate) async fn reset_sink(sink: &str, fan_out: u64) -> Result<()> {
    let (status, _) =
        Api::connect(sink, "").await?.call("POST", &format!("/control/reset/{fan_out}"), "").await?;
    ensure!(status == 200, "the sink answered {status}");
    Ok(())
}

/// What the sink has received.
pub(crate) async fn sink_stats(sink: &str) -> Result<Stats> {
    let (_, text) = Api::connect(sink, "").await?.call("GET", "/control/stats", "").await?;
    Ok(Stats::from_json(&serde_json::from_str(&text)?))
}
