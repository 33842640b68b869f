//! Receivers: HTTP servers inside the test that remember every request, with the time it began and ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::now;

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// When its body was complete.
    pub(crate) began_at: Instant,
    /// When it was answered, or the sender went away; none while it is open.
    pub(crate) ended_at: Option<Instant>,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The status that it was, or is to be, answered with.
    pub(crate) answered: u16,
}

impl Received {
    /// A header, if it is there and is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// `webhook-id`: the event.
    pub(crate) fn event_id(&self) -> &str {
        self.header("webhook-id").unwrap_or_default()
    }

    /// `tidegate-attempt`: 1 for the first request.
    pub(crate) fn attempt(&self) -> u32 {
        self.header("tidegate-attempt").and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

/// What a receiver answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// It thinks so long before it answers.
    pub(crate) after: Duration,
}

impl Reply {
    /// A status, at once, with an empty body.
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new(), after: Duration::ZERO }
    }

    /// With one more header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a body.
    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Answered after a while.
    pub(crate) fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }
}

type Behaviour = dyn Fn(&Received) -> Reply + Send + Sync;

struct Book {
    received: Mutex<Vec<Received>>,
    behaviour: Mutex<Arc<Behaviour>>,
}

impl Book {
    fn received(&self) -> MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn behaviour(&self) -> MutexGuard<'_, Arc<Behaviour>> {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An HTTP server on a port of its own. It stops when it is dropped.
pub(crate) struct Receiver {
    /// `http://127.0.0.1:port`.
    pub(crate) url: String,
    book: Arc<Book>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receiver {
    /// Starts one that answers as `behaviour` says.
    pub(crate) async fn start(behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let book = Arc::new(Book { received: Mutex::default(), behaviour: Mutex::new(Arc::new(behaviour)) });
        let accepting = tokio::spawn(accept(listener, book.clone()));
        Self { url, book, accepting }
    }

    /// From now on it answers as `behaviour` says.
    pub(crate) fn behave(&self, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        *self.book.behaviour() = Arc::new(behaviour);
    }

    /// All that came in so far, in that order.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.book.received().clone()
    }

    /// How many requests came in so far.
    pub(crate) fn count(&self) -> usize {
        self.book.received().len()
    }
}

async fn accept(listener: TcpListener, book: Arc<Book>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let book = book.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &book));
            // An error means that the sender went away, as a killed one does.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(request: Request<Incoming>, book: &Book) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut received = Received {
        began_at: now(),
        ended_at: None,
        method: head.method.to_string(),
        path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: head.headers,
        body,
        answered: 0,
    };
    let behaviour = book.behaviour().clone();
    let reply = behaviour(&received);
    received.answered = reply.status;
    let index = {
        let mut all = book.received();
        all.push(received);
        all.len() - 1
    };
    let _open = Open { book, index };
    if !reply.after.is_zero() {
        tokio::time::sleep(reply.after).await;
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(reply.body)).expect("a test's own headers"))
}

/// Notes the end of a request, also of one whose sender went away: its future is dropped then.
struct Open<'a> {
    book: &'a Book,
    index: usize,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(received) = self.book.received().get_mut(self.index) {
            received.ended_at = Some(now());
        }
    }
}
