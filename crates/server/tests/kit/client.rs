//! A client for the API: one connection for each call, JSON both ways.

use std::fmt::{self, Display, Formatter};
use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// No call of a test may take longer.
const LONGEST_CALL: Duration = Duration::from_secs(30);

/// Calls one server with one key.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// `127.0.0.1:1234`.
    pub(crate) authority: String,
    /// Goes with each call as a bearer token.
    pub(crate) key: String,
    /// Headers that go with each call.
    pub(crate) headers: Vec<(String, String)>,
}

/// What a call was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The headers of the answer.
    pub(crate) headers: HeaderMap,
    /// The body as JSON; null where it is empty or no JSON.
    pub(crate) json: Value,
    /// The body as it came.
    pub(crate) bytes: Bytes,
}

/// Why no whole answer came.
#[derive(Clone, Debug)]
pub(crate) enum NoAnswer {
    /// Nobody listens there: nothing was sent.
    Refused,
    /// Whether the call was received, and what came of it, is not known.
    Lost(String),
}

impl Display for NoAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the connection was refused"),
            Self::Lost(why) => f.write_str(why),
        }
    }
}

impl Answer {
    /// Insists on a status, and gives what is under `data`.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "answered {}", String::from_utf8_lossy(&self.bytes));
        let mut json = self.json;
        json.get_mut("data").map(Value::take).unwrap_or(json)
    }

    /// Insists on a failure with this status and code, and gives the whole answer.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.json["code"].as_str()), (status, Some(code)), "answered {}", self.json);
        self.json
    }

    /// A header, if it is there and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Client {
    /// A client for a server at `http://host:port`.
    pub(crate) fn new(base_url: &str, key: &str) -> Self {
        let authority = base_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { authority, key: key.to_owned(), headers: Vec::new() }
    }

    /// The same with another key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// The same with one more header.
    pub(crate) fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, None).await
    }

    /// A call that must be answered; a test that expects no answer uses [`Client::try_send`].
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let content_type = body.as_ref().map(|_| "application/json");
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let shown = format!("{method} {path}");
        match self.try_send(method, path, content_type, bytes).await {
            Ok(answer) => answer,
            Err(error) => panic!("{shown}: {error}"),
        }
    }

    /// One exchange with a body of any type.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, NoAnswer> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.authority)
            .header("authorization", format!("Bearer {}", self.key));
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| NoAnswer::Lost(error.to_string()))?;
        let exchange = self.exchange(request);
        tokio::time::timeout(LONGEST_CALL, exchange)
            .await
            .map_err(|_| NoAnswer::Lost(format!("no answer within {LONGEST_CALL:?}")))?
            .map_err(|error| match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
                Some(ErrorKind::ConnectionRefused) => NoAnswer::Refused,
                _ => NoAnswer::Lost(error.to_string()),
            })
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        connection.abort();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Answer { status: StatusCode::as_u16(&head.status), headers: head.headers, json, bytes })
    }
}
