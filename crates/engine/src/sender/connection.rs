//! An open HTTP connection, and one exchange on it.
//!
//! HTTP/1.1 is driven by the task that waits for the response: no other task reads or writes, so an attempt on a kept
//! connection costs no wake-up but the socket's own. While it is kept nobody waits for it; what its peer did meanwhile is
//! seen when it is used, before anything is written. HTTP/2 is shared by attempts and needs a task of its own: see [`Http2`].

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;

use super::http2::Http2;
use super::stream::{Allowance, Breach, Stream};

/// The largest head of a response, in bytes: eight times what real ones have. (hyper stops at 100 headers by itself.)
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// What an HTTP/1.1 connection buffers: a head must fit.
const MAX_BUFFER: usize = MAX_HEAD + 8 * 1024;

type Outgoing = Full<Bytes>;

/// Which form a request must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// An open connection on which no request is waiting.
pub(super) enum Connection {
    Http1(Box<Http1>),
    Http2(Http2),
}

/// Both halves of an HTTP/1.1 connection.
pub(super) struct Http1 {
    requests: http1::SendRequest<Outgoing>,
    allowance: Allowance,
    breach: Breach,
    /// Reads and writes; `None` once it has come to its end.
    driver: Option<http1::Connection<TokioIo<Stream>, Outgoing>>,
}

/// A complete head, its body yet to be read, and the connection that it comes on.
pub(super) struct Exchanged {
    pub(super) head: Parts,
    pub(super) body: Incoming,
    pub(super) connection: Connection,
}

/// No complete head came.
pub(super) struct Unanswered {
    /// What came is not HTTP, or beyond its limits; else the connection broke.
    pub(super) unusable: bool,
    /// Nothing of the request was written: it may go on another connection.
    pub(super) unsent: bool,
    /// What broke the TLS under it, if that is what broke.
    pub(super) breach: Option<&'static str>,
    pub(super) protocol: Protocol,
}

impl Connection {
    /// Speaks HTTP/1.1 on `stream`.
    pub(super) async fn http1(stream: Stream) -> hyper::Result<Self> {
        let mut settings = http1::Builder::new();
        settings.max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFER);
        let (allowance, breach) = (stream.allowance(), stream.breach());
        allowance.renew();
        let (requests, driver) = settings.handshake(TokioIo::new(stream)).await?;
        Ok(Self::Http1(Box::new(Http1 { requests, allowance, breach, driver: Some(driver) })))
    }

    /// Speaks HTTP/2 on `stream`.
    pub(super) async fn http2(stream: Stream) -> hyper::Result<Self> {
        Ok(Self::Http2(Http2::open(stream).await?))
    }

    /// Sends one request and waits for the head of its response.
    pub(super) async fn exchange(
        self,
        compose: impl FnOnce(Protocol) -> http::Request<Bytes>,
    ) -> Result<Exchanged, Unanswered> {
        let (sent, connection, protocol) = match self {
            Self::Http1(mut http1) => {
                let sent = http1.exchange(compose(Protocol::Http1)).await.map_err(unanswered);
                (sent, Self::Http1(http1), Protocol::Http1)
            }
            Self::Http2(mut http2) => {
                let sent = http2.exchange(compose(Protocol::Http2)).await.map_err(unanswered);
                (sent, Self::Http2(http2), Protocol::Http2)
            }
        };
        match sent {
            Ok(response) => {
                let (head, body) = response.into_parts();
                Ok(Exchanged { head, body, connection })
            }
            Err((error, unsent)) => {
                let unusable = error.is_parse() || connection.is_flooded();
                Err(Unanswered { unusable, unsent, breach: connection.breach(), protocol })
            }
        }
    }

    /// Reads at most `limit` bytes of a body. Also says whether that was all of it.
    pub(super) async fn read(&mut self, mut body: Incoming, limit: usize, read: &mut BytesMut) -> bool {
        while !body.is_end_stream() {
            let frame = match self {
                Self::Http1(http1) => http1.frame(&mut body).await,
                Self::Http2(_) => body.frame().await,
            };
            match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
                None => break,
                Some(Err(_)) => return false,
                Some(Ok(Err(_trailers))) => {}
                Some(Ok(Ok(data))) if read.len() + data.len() > limit => {
                    read.extend_from_slice(&data[..limit - read.len()]);
                    return false;
                }
                Some(Ok(Ok(data))) => read.extend_from_slice(&data),
            }
        }
        true
    }

    fn is_flooded(&self) -> bool {
        match self {
            Self::Http1(http1) => http1.allowance.is_spent(),
            Self::Http2(http2) => http2.is_flooded(),
        }
    }

    fn breach(&self) -> Option<&'static str> {
        match self {
            Self::Http1(http1) => http1.breach.sentence(),
            Self::Http2(http2) => http2.breach(),
        }
    }

    /// After a whole response: whether another request may follow on it.
    pub(super) fn settle(&mut self) -> bool {
        match self {
            Self::Http1(http1) => http1.requests.is_ready() || (http1.is_open() && http1.requests.is_ready()),
            Self::Http2(http2) => http2.is_open(),
        }
    }
}

/// What went wrong, and whether the request came back unsent.
fn unanswered<B>(mut failed: TrySendError<http::Request<B>>) -> (hyper::Error, bool) {
    let unsent = failed.take_message().is_some();
    (failed.into_error(), unsent)
}

impl Http1 {
    async fn exchange(
        &mut self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Incoming>, TrySendError<http::Request<Outgoing>>> {
        self.allowance.renew();
        // The driver reads before it writes: a peer that has closed meanwhile does not cost an attempt.
        let mut response = pin!(self.requests.try_send_request(request.map(Full::new)));
        let driver = &mut self.driver;
        poll_fn(|cx| drive(driver, cx, |silent| response.as_mut().poll(silent))).await
    }

    async fn frame(&mut self, body: &mut Incoming) -> Option<hyper::Result<hyper::body::Frame<Bytes>>> {
        let driver = &mut self.driver;
        poll_fn(|cx| {
            // Asking for a frame is what makes the driver read one.
            if let Poll::Ready(frame) =
                Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop()))
            {
                return Poll::Ready(frame);
            }
            drive(driver, cx, |silent| Pin::new(&mut *body).poll_frame(silent))
        })
        .await
    }

    /// Lets the driver see what the peer did meanwhile. One that has come to its end is dropped.
    fn is_open(&mut self) -> bool {
        let silent = &mut Context::from_waker(Waker::noop());
        let ended = self.driver.as_mut().is_none_or(|driver| Pin::new(driver).poll(silent).is_ready());
        if ended {
            self.driver = None;
        }
        !ended
    }
}

/// Reads and writes what can be, then looks at `what` comes out of it. Only the driver can bring that forward, and it
/// has just been run, so `what` gets a waker that does nothing: there is no second wake-up.
fn drive<T>(
    driver: &mut Option<http1::Connection<TokioIo<Stream>, Outgoing>>,
    cx: &mut Context<'_>,
    mut what: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let silent = &mut Context::from_waker(Waker::noop());
    if driver.as_mut().is_some_and(|driver| Pin::new(driver).poll(cx).is_ready()) {
        // Dropped, it hands back what it did not send and ends what it did not finish.
        *driver = None;
    }
    what(silent)
}
