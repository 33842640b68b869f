//! Receivers: HTTP servers inside the test that remember every request, with the time it began and ended.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::net::{TcpListener, TcpStream};

use super::{millis, now, secs, wall};

/// The connections of a process that was killed end at once; we may be slow to see that.
const LONGEST_DRAIN: Duration = secs(30);

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// When its body was complete.
    pub(crate) began_at: Instant,
    /// The same by the clock on the wall.
    pub(crate) arrived_at: Timestamp,
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

    /// `tidegate-delivery`: the event on its way to this receiver.
    pub(crate) fn delivery_id(&self) -> &str {
        self.header("tidegate-delivery").unwrap_or_default()
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
    /// Connections that are open, by who opened them.
    peers: Mutex<HashSet<SocketAddr>>,
}

impl Book {
    fn peers(&self) -> MutexGuard<'_, HashSet<SocketAddr>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether only this one has a connection.
    fn is_alone(&self, peer: SocketAddr) -> bool {
        let peers = self.peers();
        peers.len() == 1 && peers.contains(&peer)
    }

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
        let behaviour = Mutex::new(Arc::new(behaviour) as Arc<Behaviour>);
        let book = Arc::new(Book { received: Mutex::default(), behaviour, peers: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, book.clone()));
        Self { url, book, accepting }
    }

    /// From now on it answers as `behaviour` says.
    pub(crate) fn behave(&self, behaviour: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        *self.book.behaviour() = Arc::new(behaviour);
    }

    /// Waits until all that was sent by senders that are gone has come in, and all their connections have ended.
    pub(crate) async fn drained(&self) {
        let own = TcpStream::connect(self.url.trim_start_matches("http://")).await.expect("it listens");
        let address = own.local_addr().expect("it is connected");
        let began = now();
        // Connections are accepted in their order: when our own is, all before it were.
        while !self.book.is_alone(address) {
            assert!(began.elapsed() < LONGEST_DRAIN, "connections of a sender that is gone do not end");
            tokio::time::sleep(millis(1)).await;
        }
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
    while let Ok((stream, peer)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let book = book.clone();
        book.peers().insert(peer);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &book));
            // An error means that the sender went away, as a killed one does.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            book.peers().remove(&peer);
        });
    }
}

async fn answer(request: Request<Incoming>, book: &Book) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut received = Received {
        began_at: now(),
        arrived_at: wall(),
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
