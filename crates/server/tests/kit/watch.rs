//! One who watches `/v1/stream`.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::Client;

/// A stream that is being read.
pub(crate) struct Watch {
    read: Arc<Mutex<String>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// Begins to watch with the key of `client`; returns when the stream is open.
    pub(crate) async fn start(client: &Client) -> Self {
        let stream = TcpStream::connect(&client.authority).await.expect("the server listens");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        let mut request = Request::get("/v1/stream")
            .header("host", &client.authority)
            .header("authorization", format!("Bearer {}", client.key));
        for (name, value) in &client.headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let mut response = sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let read = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&read);
        let task = tokio::spawn(async move {
            let _open = sender;
            while let Some(Ok(frame)) = response.body_mut().frame().await {
                if let Some(data) = frame.data_ref() {
                    kept.lock().expect("no panic").push_str(&String::from_utf8_lossy(data));
                }
            }
        });
        Self { read, task }
    }

    /// Whether the server has ended it.
    pub(crate) fn ended(&self) -> bool {
        self.task.is_finished()
    }

    /// All that came so far, as it came.
    pub(crate) fn text(&self) -> String {
        self.read.lock().expect("no panic").clone()
    }

    /// The data of all events so far.
    pub(crate) fn seen(&self) -> Vec<Value> {
        let read = self.read.lock().expect("no panic");
        let data = read.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// Their kinds.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.seen().iter().map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect()
    }
}
