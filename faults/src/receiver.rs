//! Receivers: HTTP/1.1 servers that write down every request with the moment of its first byte, and how it ended. While they
//! think about an answer they watch for a sender that goes away.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::{millis, nanos, now, pass, secs, wall_ms};
use crate::history::{Book, History};
use crate::producer::hex;

/// Connections of a process that was killed end at once; we may be slow to see that.
const LONGEST_DRAIN: Duration = secs(60);
/// Longer bodies are not written down, only their hash.
const LONGEST_BODY: usize = 1_024;

/// A request of our own, which is told when it was seen and is in no history.
pub(crate) const PROBE: &str = "GET /probe ";

/// What a receiver knows of a request when it decides about its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// `tidegate-attempt`.
    pub(crate) attempt: u32,
    pub(crate) body: &'a [u8],
}

/// What it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// It thinks so long before it answers.
    pub(crate) after: Duration,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Reply {
    pub(crate) const fn status(status: u16) -> Self {
        Self { status, after: Duration::ZERO, retry_after: None }
    }

    pub(crate) const fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(crate) const fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    fn bytes(self) -> String {
        let retry = self.retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
        format!("HTTP/1.1 {} x\r\n{retry}content-length: 0\r\n\r\n", self.status)
    }
}

/// How a receiver behaves.
pub(crate) type Behaviour = Arc<dyn Fn(Asked<'_>) -> Reply + Send + Sync>;

struct Shared {
    name: &'static str,
    history: Arc<History>,
    behaviour: Behaviour,
    /// Connections that are open, by who opened them.
    peers: Mutex<HashSet<SocketAddr>>,
    /// First attempts that came.
    first: AtomicU64,
    /// Those among them of the type `….made`.
    first_made: AtomicU64,
    all: AtomicU64,
    /// Answers with `Retry-After`.
    refused: AtomicU64,
}

impl Shared {
    fn peers(&self) -> MutexGuard<'_, HashSet<SocketAddr>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests and connections of all receivers of this process are numbered.
static REQUESTS: AtomicU64 = AtomicU64::new(1);
static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

/// A server on a port of its own. It stops when it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Receiver {
    pub(crate) async fn start(
        name: &'static str,
        history: &Arc<History>,
        behaviour: Behaviour,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            name,
            history: history.clone(),
            behaviour,
            peers: Mutex::default(),
            first: AtomicU64::new(0),
            first_made: AtomicU64::new(0),
            all: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { address, shared, accepting })
    }

    /// First attempts so far. After a crash some come again.
    pub(crate) fn first_attempts(&self) -> u64 {
        self.shared.first.load(Ordering::Relaxed)
    }

    /// First attempts so far of events that do not bypass quiet hours.
    pub(crate) fn first_made(&self) -> u64 {
        self.shared.first_made.load(Ordering::Relaxed)
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.all.load(Ordering::Relaxed)
    }

    /// Answers so far that asked to be left alone for a while.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Waits until all that was sent by a server that is gone has come in, and its connections have ended, so that each life
    /// of a server has its own requests.
    pub(crate) async fn drained(&self) -> Result<()> {
        let own = TcpStream::connect(self.address).await?;
        let address = own.local_addr()?;
        let began = now();
        // Connections are accepted in their order: when our own is, all before it were.
        loop {
            let alone = {
                let peers = self.shared.peers();
                peers.len() == 1 && peers.contains(&address)
            };
            if alone {
                return Ok(());
            }
            ensure!(began.elapsed() < LONGEST_DRAIN, "connections of a sender that is gone do not end");
            pass(millis(1)).await;
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, peer)) = listener.accept().await {
        let shared = shared.clone();
        shared.peers().insert(peer);
        tokio::spawn(async move {
            let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
            // An error means that the sender went away, as a killed one does.
            let _ =
                Connection { stream, shared: &shared, number: connection, buffer: Vec::new() }.serve().await;
            shared.peers().remove(&peer);
        });
    }
}

struct Connection<'a> {
    stream: TcpStream,
    shared: &'a Shared,
    number: u64,
    /// What was read and not yet taken.
    buffer: Vec<u8>,
}

impl Connection<'_> {
    async fn serve(mut self) -> Result<()> {
        self.stream.set_nodelay(true)?;
        loop {
            if self.buffer.is_empty() && self.read().await? == 0 {
                return Ok(());
            }
            let began = nanos();
            let (head, body) = self.message().await?;
            if head.starts_with(PROBE) {
                let answer = format!("HTTP/1.1 200 x\r\nseen: {began}\r\ncontent-length: 0\r\n\r\n");
                self.stream.write_all(answer.as_bytes()).await?;
            } else {
                self.answer(began, &head, &body).await?;
            }
        }
    }

    async fn read(&mut self) -> std::io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }

    /// A whole request: its head in text, and its body.
    async fn message(&mut self) -> Result<(String, Vec<u8>)> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                let length: usize =
                    header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
                let whole = end + 4 + length;
                while self.buffer.len() < whole {
                    ensure!(self.read().await? > 0, "cut off in its body");
                }
                let rest = self.buffer.split_off(whole);
                let message = std::mem::replace(&mut self.buffer, rest);
                return Ok((head, message[end + 4..].to_vec()));
            }
            ensure!(self.read().await? > 0, "cut off in its head");
        }
    }

    async fn answer(&mut self, began: u64, head: &str, body: &[u8]) -> Result<()> {
        let n = self.note_request(began, head, body);
        let attempt = header(head, "tidegate-attempt").and_then(|text| text.parse().ok()).unwrap_or(0);
        self.shared.all.fetch_add(1, Ordering::Relaxed);
        if attempt == 1 {
            self.shared.first.fetch_add(1, Ordering::Relaxed);
            let made = header(head, "tidegate-event-type").is_some_and(|name| name.ends_with(".made"));
            self.shared.first_made.fetch_add(u64::from(made), Ordering::Relaxed);
        }
        let reply = (self.shared.behaviour)(Asked { attempt, body });
        let stays = self.stays(reply.after).await;
        // Before it is written: who sees the answer may send the next request at once.
        let answered = nanos();
        let written =
            if stays { self.stream.write_all(reply.bytes().as_bytes()).await.is_ok() } else { false };
        let how = if written { "answered" } else { "closed" };
        let retry_after = reply.retry_after.map(|seconds| seconds.to_string());
        self.shared.history.write(
            Book::Receiver,
            &json!({"kind": "end", "t": answered, "n": n, "how": how, "status": reply.status, "retry_after": retry_after}),
        );
        if written && reply.retry_after.is_some() {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        written.then_some(()).context("it went away")
    }

    /// Thinks for a while. Says whether the sender is still there then.
    async fn stays(&mut self, after: Duration) -> bool {
        if after.is_zero() {
            return true;
        }
        let mut byte = [0];
        tokio::select! {
            () = pass(after) => true,
            peeked = self.stream.peek(&mut byte) => match peeked {
                // A next request already: not seen in practice, and no reason to doubt this one.
                Ok(1..) => true,
                _ => false,
            },
        }
    }

    fn note_request(&self, began: u64, head: &str, body: &[u8]) -> u64 {
        let n = REQUESTS.fetch_add(1, Ordering::Relaxed);
        let text = |name| header(head, name);
        let path = head.split(' ').nth(1);
        let number = |name| header(head, name).and_then(|text| text.parse::<u64>().ok());
        let kept = if body.len() <= LONGEST_BODY { std::str::from_utf8(body).ok() } else { None };
        self.shared.history.write(
            Book::Receiver,
            &json!({
                "kind": "request", "t": began, "n": n, "receiver": self.shared.name, "connection": self.number,
                "event_id": text("webhook-id"), "delivery_id": text("tidegate-delivery"),
                "attempt": number("tidegate-attempt"), "event_type": text("tidegate-event-type"),
                "timestamp": number("webhook-timestamp"), "signature": text("webhook-signature"),
                "sha256": hex(&Sha256::digest(body)), "body": kept, "wall_ms": wall_ms(), "path": path,
            }),
        );
        n
    }
}

/// A header's text.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
