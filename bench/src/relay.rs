//! `tidegate-bench relay`: the least that accepts events and sends them on. It answers 202 at once and forwards over
//! keep-alive connections, one exchange in and one out for each event, and stores nothing. What a server with storage
//! reaches is compared with it.

use std::convert::Infallible;
use std::io::Write as _;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::stack::{Line, Stack, Target};
use crate::wire::Wire;

const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
/// Events that wait in one connection's queue at most; then its client waits.
const QUEUE: usize = 64;

/// Forwards to the sink at this address until it is killed. The first line of its output is its own address.
pub(crate) async fn run(stack: Stack, sink: String) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let line = Line::connect(stack, &Target::plain(&sink)).await?;
        let (sender, queue) = channel(QUEUE);
        // An error of either means that one of the two sides went away.
        tokio::spawn(forward(queue, line));
        match stack {
            Stack::Hyper => tokio::spawn(accept(stream, sender)),
            Stack::Bare => tokio::spawn(accept_bare(stream, sender)),
        };
    }
}

async fn accept(stream: TcpStream, sender: Sender<Vec<u8>>) -> Result<()> {
    let service = service_fn(|request: http::Request<Incoming>| {
        let sender = sender.clone();
        async move {
            if let Ok(body) = request.into_body().collect().await {
                let _ = sender.send(body.to_bytes().into()).await;
            }
            let mut answer = http::Response::new(Empty::<Bytes>::new());
            *answer.status_mut() = http::StatusCode::ACCEPTED;
            Ok::<_, Infallible>(answer)
        }
    });
    Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?)
}

async fn accept_bare(stream: TcpStream, sender: Sender<Vec<u8>>) -> Result<()> {
    let mut wire = Wire::new(stream);
    while let Some(message) = wire.read().await? {
        let body = wire.body(&message).to_vec();
        wire.write(ACCEPTED).await?;
        if sender.send(body).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn forward(mut queue: Receiver<Vec<u8>>, mut line: Line) -> Result<()> {
    while let Some(body) = queue.recv().await {
        let (status, _) = line.post(body).await?;
        ensure!(status == 200, "the sink answered {status}");
    }
    Ok(())
}
