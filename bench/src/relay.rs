//! `tidegate-bench relay`: the least that accepts events and sends them on. It answers 202 at once and forwards over
//! keep-alive connections, one exchange in and one out for each event, and stores nothing. What a server with storage
//! reaches is compared with it.

use std::io::{self, Write as _};

use anyhow::Result;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};

use crate::payload;
use crate::wire::Wire;

const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
/// Events that wait in one connection's queue at most; then its client waits.
const QUEUE: usize = 64;

/// Forwards to the sink at this address until it is killed. The first line of its output is its own address.
pub(crate) async fn run(sink: String) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (wire, sink) = (Wire::new(stream)?, sink.clone());
        tokio::spawn(async move {
            // An error means that one of the two sides went away.
            let _ = accept(wire, &sink).await;
        });
    }
}

async fn accept(mut wire: Wire, sink: &str) -> io::Result<()> {
    let (sender, queue) = channel(QUEUE);
    let forwarding = tokio::spawn(forward(queue, Wire::connect(sink).await?, sink.to_owned()));
    while let Some(message) = wire.read().await? {
        let body = wire.body(&message).to_vec();
        wire.write(ACCEPTED).await?;
        if sender.send(body).await.is_err() {
            break;
        }
    }
    drop(sender);
    forwarding.await.unwrap_or(Ok(()))
}

async fn forward(mut queue: Receiver<Vec<u8>>, mut wire: Wire, sink: String) -> io::Result<()> {
    let length = payload::LENGTH;
    let head = format!(
        "POST /ok/0 HTTP/1.1\r\nhost: {sink}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut request = Vec::with_capacity(1_024);
    while let Some(body) = queue.recv().await {
        request.clear();
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(&body);
        wire.write(&request).await?;
        if wire.read().await?.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
