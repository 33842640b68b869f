//! A server that does what a script says, byte by byte.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One thing to do after a request was read.
#[derive(Clone)]
pub(crate) enum Step {
    Write(Vec<u8>),
    /// The same bytes for as long as the peer takes them.
    WriteForEver(Vec<u8>),
    /// Says nothing more.
    Hang,
    /// Closes in order.
    Close,
    /// Breaks the connection.
    Reset,
}

pub(crate) fn write(text: &str) -> Step {
    Step::Write(text.replace('\n', "\r\n").into_bytes())
}

/// A plain answer without a body.
pub(crate) fn status(status: u16, headers: &str) -> Vec<Step> {
    vec![write(&format!("HTTP/1.1 {status} Said\n{headers}content-length: 0\n\n"))]
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Server {
    /// Answers the n-th request (from 0, over all connections) as `script` says.
    pub(crate) async fn start(script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(crate) async fn start_at(
        address: &str,
        script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            closed: Arc::default(),
        };
        let (seen, connections, closed) =
            (Arc::clone(&server.seen), Arc::clone(&server.connections), Arc::clone(&server.closed));
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, SeqCst);
                let (seen, script, closed) = (Arc::clone(&seen), Arc::clone(&script), Arc::clone(&closed));
                tokio::spawn(async move {
                    serve(stream, &seen, &*script).await;
                    closed.fetch_add(1, SeqCst);
                });
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
    /// Requests as they came, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
    /// Connections that have come to their end.
    pub(crate) fn closed(&self) -> usize {
        self.closed.load(SeqCst)
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    script: &(dyn Fn(usize) -> Vec<Step> + Send + Sync),
) {
    stream.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        for step in script(number) {
            match step {
                Step::Write(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                }
                Step::WriteForEver(bytes) => while stream.write_all(&bytes).await.is_ok() {},
                Step::Hang => {
                    // Until the peer goes.
                    let mut rest = [0; 1024];
                    while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
                    return;
                }
                Step::Close => return,
                Step::Reset => {
                    socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                    return;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |n| n.parse().unwrap());
        if body.len() >= length {
            return Some(text.into_owned());
        }
    }
}

/// A server that takes connections and never says a word.
pub(crate) async fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let _held = listener;
        pending::<()>().await;
    });
    address
}

/// A port whose first packets are dropped: its queue of connections is full, and stays so for as long as this is kept.
pub(crate) struct Full {
    pub(crate) address: SocketAddr,
    _listener: socket2::Socket,
    _waiting: Vec<socket2::Socket>,
}

pub(crate) fn full() -> Full {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    loop {
        let guest = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        if guest.connect_timeout(&address, std::time::Duration::from_millis(100)).is_err() {
            return Full { address: address.as_socket().unwrap(), _listener: listener, _waiting: waiting };
        }
        waiting.push(guest);
    }
}
