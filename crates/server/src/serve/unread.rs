//! What a refused call had not read of its body.
//!
//! Whoever still sends when the connection closes is told of the close, not of the answer: the system drops what waits to
//! be read by them. So the rest of a body is read on and thrown away for a while before the answer goes out, and where it
//! is longer than that, the answer says that the connection ends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, EXPECT, HeaderValue};
use hyper::{Request, Version};
use tokio::sync::oneshot;

/// So much of a body that nobody wants is read: several times the largest that is allowed.
const MOST_BYTES: usize = 32 << 20;
/// And for so long.
const LONGEST: Duration = Duration::from_secs(5);

/// A body that comes back when a handler drops it before its end.
pub(super) struct Lent {
    /// `None` once it has come back.
    body: Option<Incoming>,
    back: Option<oneshot::Sender<Rest>>,
    begun: bool,
}

/// What was not read.
struct Rest {
    body: Incoming,
    begun: bool,
}

/// Where it comes back.
pub(super) struct Lender {
    back: Option<oneshot::Receiver<Rest>>,
    expects: bool,
}

/// Lends a request's body to whoever answers it.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Lent>, Lender) {
    let (head, body) = request.into_parts();
    // On HTTP/2 a stream ends alone, and its answer is safe.
    let watched = head.version < Version::HTTP_2 && !body.is_end_stream();
    let (sender, receiver) = if watched {
        let (sender, receiver) = oneshot::channel();
        (Some(sender), Some(receiver))
    } else {
        (None, None)
    };
    let lender = Lender { back: receiver, expects: head.headers.contains_key(EXPECT) };
    (Request::from_parts(head, Lent { body: Some(body), back: sender, begun: false }), lender)
}

impl Lender {
    /// Throws away what was not read, within bounds; says in the answer where that was not all.
    pub(super) async fn finish(self, mut response: Response) -> Response {
        let Some(Ok(rest)) = self.back.map(|mut back| back.try_recv()) else { return response };
        // Who asks whether to go on, and is refused, sends nothing more.
        let waits = self.expects && !rest.begun;
        let ended = !waits && tokio::time::timeout(LONGEST, throw_away(rest.body)).await.unwrap_or(false);
        if !ended {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Whether it came to its end.
async fn throw_away(mut body: Incoming) -> bool {
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        seen += frame.data_ref().map_or(0, Bytes::len);
        if seen > MOST_BYTES {
            return false;
        }
    }
    true
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.begun = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.back = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(back), Some(body)) = (self.back.take(), self.body.take())
            && !body.is_end_stream()
        {
            // Whoever lent it may have gone away with the connection.
            let _gone = back.send(Rest { body, begun: self.begun });
        }
    }
}
