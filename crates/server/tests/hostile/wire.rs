//! A server whose every port misbehaves in its own way: it follows scripts.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::frames::{END_STREAM, Incoming};

/// The bytes to write, given the stream that the last request came on (HTTP/2; else 0).
type Bytes = Arc<dyn Fn(u32) -> Vec<u8> + Send + Sync>;

/// One thing that a misbehaving server does.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads a whole request; leaves if none comes.
    Request,
    /// Reads the head of a request and none of its body; HTTP/2 alone.
    Head,
    /// Reads what there is, at least a byte.
    Something,
    /// Writes.
    Write(Bytes),
    /// Writes the same again and again, until the client is gone.
    Again(Bytes, Duration),
    /// Writes no more, and says so.
    HalfClose,
    /// Reads until the client is gone.
    Silence,
    /// Neither reads nor writes, nor closes, for as long as the test runs.
    Deaf,
    /// Closes with a reset.
    Reset,
    /// From the step with this number again.
    From(usize),
}

/// Writes this text.
pub(crate) fn write(text: impl Into<Vec<u8>>) -> Step {
    let bytes = text.into();
    Step::Write(Arc::new(move |_| bytes.clone()))
}

/// Writes what it makes of the stream's number.
pub(crate) fn on_stream(make: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> Step {
    Step::Write(Arc::new(make))
}

/// Writes this over and over.
pub(crate) fn again(text: impl Into<Vec<u8>>, every: Duration) -> Step {
    let bytes = text.into();
    Step::Again(Arc::new(move |_| bytes.clone()), every)
}

/// What lies under the script.
#[derive(Clone)]
pub(crate) enum Under {
    Tcp,
    /// HTTP/1.1 in TLS.
    Tls(TlsAcceptor),
    /// HTTP/2 in TLS.
    Http2(TlsAcceptor),
}

/// One listener that follows one script on each connection. It stops when it is dropped.
pub(crate) struct Port {
    pub(crate) number: u16,
    counts: Arc<Counts>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    /// The most requests that one connection carried.
    most: AtomicUsize,
    open: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.accepting.abort();
        for connection in self.counts.open.lock().expect("no panic").drain(..) {
            connection.abort();
        }
    }
}

impl Port {
    pub(crate) async fn open(under: Under, script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        if script.iter().any(|step| matches!(step, Step::Deaf)) {
            // Small segments and little room: what is not read soon blocks the one who writes.
            let socket = SockRef::from(&listener);
            socket.set_recv_buffer_size(4_096).expect("a small buffer");
            socket.set_tcp_mss(1_000).expect("small segments");
        }
        let number = listener.local_addr().expect("it is bound").port();
        let counts = Arc::new(Counts::default());
        let accepting = tokio::spawn(accept(listener, under, script.into(), Arc::clone(&counts)));
        Self { number, counts, accepting }
    }

    /// One whose queue of connections is full: the system drops what knocks.
    pub(crate) fn full() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
        listener.listen(0).expect("it listens");
        let address = listener.local_addr().expect("it is bound");
        let knocks = || {
            let guest = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            guest.connect_timeout(&address, Duration::from_millis(100)).ok().map(|()| guest)
        };
        let waiting: Vec<_> = std::iter::from_fn(knocks).collect();
        let number = address.as_socket().expect("an address").port();
        let accepting = tokio::spawn(async move {
            let _held = (listener, waiting);
            std::future::pending::<()>().await;
        });
        Self { number, counts: Arc::default(), accepting }
    }

    /// Requests that were read.
    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(SeqCst)
    }

    /// The most requests that one connection carried.
    pub(crate) fn most_on_one_connection(&self) -> usize {
        self.counts.most.load(SeqCst)
    }
}

async fn accept(listener: TcpListener, under: Under, script: Arc<[Step]>, counts: Arc<Counts>) {
    while let Ok((tcp, _)) = listener.accept().await {
        let (under, script, to_count) = (under.clone(), Arc::clone(&script), Arc::clone(&counts));
        // A connection that breaks is what most scripts are about.
        let serving = tokio::spawn(async move {
            let _ = serve(tcp, under, &script, &to_count).await;
        });
        let mut open = counts.open.lock().expect("no panic");
        open.retain(|connection| !connection.is_finished());
        open.push(serving);
    }
}

async fn serve(tcp: TcpStream, under: Under, script: &[Step], counts: &Counts) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    if script.iter().any(|step| matches!(step, Step::Reset)) {
        SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
    }
    match under {
        Under::Tcp => Talk::new(tcp, false, counts).follow(script).await,
        Under::Tls(tls) => match tls.accept(tcp).into_fallible().await {
            Ok(stream) => Talk::new(stream, false, counts).follow(script).await,
            // A close with unread bytes would be a reset, and take the alert with it.
            Err((_, tcp)) => Talk::new(tcp, false, counts).follow(&[Step::Silence]).await,
        },
        Under::Http2(tls) => Talk::new(tls.accept(tcp).await?, true, counts).follow(script).await,
    }
}

/// One connection.
struct Talk<'a, S> {
    stream: S,
    http2: bool,
    incoming: Incoming,
    last: u32,
    carried: usize,
    counts: &'a Counts,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Talk<'a, S> {
    fn new(stream: S, http2: bool, counts: &'a Counts) -> Self {
        Self { stream, http2, incoming: Incoming::default(), last: 0, carried: 0, counts }
    }

    async fn follow(&mut self, script: &[Step]) -> io::Result<()> {
        let mut next = 0;
        while let Some(step) = script.get(next) {
            next += 1;
            match step {
                Step::Request if self.http2 => self.read_frames(true).await?,
                Step::Request => self.read_request().await?,
                Step::Head => self.read_frames(false).await?,
                Step::Something => {
                    self.read().await?;
                }
                Step::Write(bytes) => {
                    self.stream.write_all(&bytes(self.last)).await?;
                    self.stream.flush().await?;
                }
                Step::Again(bytes, every) => loop {
                    self.stream.write_all(&bytes(self.last)).await?;
                    self.stream.flush().await?;
                    if !every.is_zero() {
                        tokio::time::sleep(*every).await;
                    }
                },
                Step::HalfClose => self.stream.shutdown().await?,
                Step::Silence => while !self.read().await?.is_empty() {},
                Step::Deaf => std::future::pending().await,
                Step::Reset => return Ok(()),
                Step::From(number) => next = *number,
            }
        }
        self.stream.shutdown().await
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 16 * 1024];
        let length = self.stream.read(&mut bytes).await?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Head and body of an HTTP/1.1 request.
    async fn read_request(&mut self) -> io::Result<()> {
        let mut got = Vec::new();
        loop {
            let more = self.read().await?;
            if more.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            got.extend(more);
            let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            if got.len() >= end + 4 + length {
                self.carry();
                return Ok(());
            }
        }
    }

    /// The frames of an HTTP/2 request, to its end or to the end of its head.
    async fn read_frames(&mut self, whole: bool) -> io::Result<()> {
        loop {
            while let Some((kind, flags, stream)) = self.incoming.next() {
                if kind == 1 {
                    self.carry();
                }
                if kind < 2 && (!whole || flags & END_STREAM != 0) {
                    self.last = stream;
                    return Ok(());
                }
            }
            let more = self.read().await?;
            if more.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.incoming.push(&more);
        }
    }

    fn carry(&mut self) {
        self.carried += 1;
        self.counts.requests.fetch_add(1, SeqCst);
        self.counts.most.fetch_max(self.carried, SeqCst);
    }
}
