//! The bytes under an HTTP connection: plain TCP, or TLS over it; and how many of them a peer may send.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::fault::tls_fault;

/// What a peer may send for one request: twice the largest head and what is read of a body. Interim answers, pings and
/// settings are no part of either, and nothing else bounds them but time.
const PER_REQUEST: usize = 256 * 1024;

/// How many bytes a peer may still send. Shared by the connection, which adds to it, and its stream, which takes from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    /// For one more request on a connection that may carry several at once.
    pub(super) fn extend(&self) {
        self.0.fetch_add(PER_REQUEST, Relaxed);
    }

    /// For the next request on a connection that carries one after the other.
    pub(super) fn renew(&self) {
        self.0.store(PER_REQUEST, Relaxed);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    fn take(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(bytes)));
        match left {
            Ok(left) if left > bytes => Ok(()),
            _ => Err(io::Error::other("the peer sends more than any answer has")),
        }
    }
}

/// What broke the TLS under a connection. In TLS 1.3 a server refuses us when our side of the handshake is over, and the
/// protocol above tells no more of it than that the connection broke. Shared as the allowance is.
#[derive(Clone, Debug, Default)]
pub(super) struct Breach(Arc<OnceLock<&'static str>>);

impl Breach {
    pub(super) fn sentence(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

/// What the peer says, counted.
pub(super) struct Stream {
    bytes: Bytes,
    allowance: Allowance,
    breach: Breach,
}

/// One of the two, so that a kept connection has one type.
enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn plain(stream: TcpStream) -> Self {
        Self { bytes: Bytes::Plain(stream), allowance: Allowance::default(), breach: Breach::default() }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            bytes: Bytes::Tls(Box::new(stream)),
            allowance: Allowance::default(),
            breach: Breach::default(),
        }
    }

    pub(super) fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }

    pub(super) fn breach(&self) -> Breach {
        self.breach.clone()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = match &mut this.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Bytes::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        let came = buf.filled().len() - before;
        match read {
            Poll::Ready(Ok(())) if came > 0 => Poll::Ready(this.allowance.take(came)),
            Poll::Ready(Err(error)) => {
                if let Some(sentence) = tls_fault(&error) {
                    let _first = this.breach.0.set(sentence);
                }
                Poll::Ready(Err(error))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Bytes::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Bytes::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }
    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
