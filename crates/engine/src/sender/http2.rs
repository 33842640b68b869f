//! An HTTP/2 connection, shared by the attempts to one destination.
//!
//! Its task reads and writes for all of them, so it must not outlive them: a peer that reads nothing, or takes no body,
//! would keep it, its socket and what was to be sent for as long as it likes.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{TrySendError, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::connection::MAX_HEAD;
use super::stream::{Allowance, Breach, Stream};

/// What a peer may send on one stream before we read it: as much as we ever read of a body.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The same for a whole connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What is buffered of one request's body; the rest waits until the peer has taken it.
const SEND_BUFFER: usize = 64 * 1024;
/// A body goes in pieces of a frame's usual size.
const PIECE: usize = 16 * 1024;
/// Requests that one connection carries. A peer that answers without taking a request's last piece makes us keep that
/// piece with the connection: 16 MiB at most.
const MAX_REQUESTS: u32 = 1_000;
/// How long the connection may take to say goodbye once nobody uses it.
const GOODBYE: Duration = Duration::from_secs(1);

/// One of those who share the connection. When the last goes, it is closed.
#[derive(Clone)]
pub(super) struct Http2 {
    requests: http2::SendRequest<Pieces>,
    allowance: Allowance,
    breach: Breach,
    carried: Arc<AtomicU32>,
    /// Nothing is ever sent by it: the connection's task sees when all of them are gone.
    _user: mpsc::Sender<Infallible>,
    /// Alive while the body of our own request is not all taken.
    body: Weak<()>,
}

impl Http2 {
    pub(super) async fn open(stream: Stream) -> hyper::Result<Self> {
        let (allowance, breach) = (stream.allowance(), stream.breach());
        allowance.extend(); // the greeting comes before the first request
        let (crew, dismissal) = watch::channel(());
        let mut settings = http2::Builder::new(Crew(dismissal));
        settings
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
        let (requests, driver) = settings.handshake(TokioIo::new(stream)).await?;
        drop(settings); // it counts as one of the crew
        let (user, users) = mpsc::channel(1);
        tokio::spawn(drive(driver, users, crew));
        Ok(Self { requests, allowance, breach, carried: Arc::default(), _user: user, body: Weak::new() })
    }

    pub(super) async fn exchange(
        &mut self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Incoming>, TrySendError<http::Request<Pieces>>> {
        let alive = Arc::new(());
        self.body = Arc::downgrade(&alive);
        self.carried.fetch_add(1, Relaxed);
        self.allowance.extend();
        self.requests.try_send_request(request.map(|rest| Pieces { rest, _alive: alive })).await
    }

    /// Whether the peer has sent more than any answer has.
    pub(super) fn is_flooded(&self) -> bool {
        self.allowance.is_spent()
    }

    /// What broke the TLS under it, if anything did.
    pub(super) fn breach(&self) -> Option<&'static str> {
        self.breach.sentence()
    }

    /// Whether more requests may follow. Not where ours was answered before it was taken: what is left of it stays with the
    /// connection.
    pub(super) fn is_open(&self) -> bool {
        let taken = self.body.strong_count() == 0;
        taken && !self.requests.is_closed() && self.carried.load(Relaxed) < MAX_REQUESTS
    }
}

/// Runs the connection until the peer is gone, or all users are. Then its tasks get a moment to end by themselves.
async fn drive(driver: impl Future, mut users: mpsc::Receiver<Infallible>, crew: watch::Sender<()>) {
    tokio::select! {
        _ended = driver => {}
        None = users.recv() => {}
    }
    let _late = timeout(GOODBYE, crew.closed()).await;
}

/// The tasks of one connection. They are dropped when the other end of this is.
#[derive(Clone)]
struct Crew(watch::Receiver<()>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Crew {
    fn execute(&self, work: F) {
        let mut dismissal = self.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                _dismissed = dismissal.changed() => {}
            }
        });
    }
}

/// A request's body.
pub(super) struct Pieces {
    rest: Bytes,
    _alive: Arc<()>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(piece))))
    }
    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}
