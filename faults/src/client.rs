//! Calls of the server's API: one connection for each.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// The operator key of all runs.
pub(crate) const KEY: &str = "tg_fault-key-fault-key-fault-key-fault-key";
/// No call may take longer, however slow the disk is.
const LONGEST_CALL: Duration = Duration::from_secs(60);

/// Calls one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// `127.0.0.1:1234`.
    address: String,
}

/// What a call was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether it says when to come again.
    pub(crate) has_retry_after: bool,
    /// The body as JSON; null where it is none.
    pub(crate) json: Value,
}

/// Why no whole answer came.
#[derive(Clone, Debug)]
pub(crate) enum NoAnswer {
    /// Nobody listens there: nothing was sent.
    Refused,
    /// Whether the call was received, and what came of it, is not known.
    Lost(#[expect(dead_code, reason = "shown where a call must succeed")] String),
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// One exchange.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, NoAnswer> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {KEY}"));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Full::new(body)).map_err(|error| NoAnswer::Lost(error.to_string()))?;
        match tokio::time::timeout(LONGEST_CALL, self.exchange(request)).await {
            Err(_) => Err(NoAnswer::Lost(format!("no answer within {LONGEST_CALL:?}"))),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
                Some(ErrorKind::ConnectionRefused) => Err(NoAnswer::Refused),
                _ => Err(NoAnswer::Lost(error.to_string())),
            },
        }
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let has_retry_after = response.headers().contains_key(http::header::RETRY_AFTER);
        let bytes = response.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok(Answer { status, has_retry_after, json: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }

    /// A call that must succeed: what is under `data`.
    pub(crate) async fn must(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        match self.send(method.clone(), path, None, bytes).await {
            Err(why) => bail!("{method} {path}: {why:?}"),
            Ok(answer) if !(200..300).contains(&answer.status) => {
                bail!("{method} {path} was answered {}: {}", answer.status, answer.json)
            }
            Ok(answer) => {
                let mut json = answer.json;
                Ok(json.get_mut("data").map(Value::take).unwrap_or(json))
            }
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.must(Method::GET, path, &Value::Null).await
    }

    /// The status of a call without a body; none where no answer came.
    pub(crate) async fn status(&self, path: &str) -> Option<u16> {
        self.send(Method::GET, path, None, Bytes::new()).await.ok().map(|answer| answer.status)
    }

    /// All items of a list, page by page.
    pub(crate) async fn list(&self, path: &str, mut each: impl FnMut(Value)) -> Result<()> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut cursor = String::new();
        loop {
            let mut page = self.get(&format!("{path}{sign}limit=200{cursor}")).await?;
            if let Some(items) = page["items"].as_array_mut() {
                items.drain(..).for_each(&mut each);
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(()),
            }
        }
    }
}
