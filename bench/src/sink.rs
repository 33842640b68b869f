//! `tidegate-bench sink`: the receiver of all measurements, a process of its own on one thread.
//!
//! The path says how it behaves: `/ok/N` answers 200 at once, `/hang/N` after ten seconds, `/throttle/N` answers 429. `N` is
//! the destination. `/control/…` is for the benchmark: what was received, and starting over.

mod book;

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::stack::Stack;
use crate::wire::Wire;
use book::Book;
pub(crate) use book::Stats;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const THROTTLE: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n";
const HANG: Duration = Duration::from_secs(10);

/// What a request is answered with.
enum Answer {
    /// 200.
    Ok,
    /// 200, but later.
    Hang,
    /// 429.
    Throttle,
    /// 200 with this body.
    Text(String),
}

/// Serves until it is killed. The first line of its output is its address.
pub(crate) async fn run(stack: Stack) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let book = Arc::new(Mutex::new(Book::new(1)));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let book = book.clone();
        // An error of either means that the sender went away.
        match stack {
            Stack::Hyper => tokio::spawn(serve(stream, book)),
            Stack::Bare => tokio::spawn(serve_bare(Wire::new(stream), book)),
        };
    }
}

async fn serve(stream: TcpStream, book: Arc<Mutex<Book>>) -> Result<()> {
    let service = service_fn(|request: http::Request<Incoming>| {
        let book = book.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let answer = answer(head.uri.path().as_bytes(), &body, &book);
            let mut response = http::Response::new(Full::new(Bytes::new()));
            match answer {
                Answer::Ok => {}
                Answer::Hang => tokio::time::sleep(HANG).await,
                Answer::Throttle => {
                    *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
                    let headers = response.headers_mut();
                    headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("86400"));
                }
                Answer::Text(text) => *response.body_mut() = Full::new(Bytes::from(text)),
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(None).clone();
    Ok(connection.serve_connection(TokioIo::new(stream), service).await?)
}

async fn serve_bare(mut wire: Wire, book: Arc<Mutex<Book>>) -> Result<()> {
    let mut answers = Vec::with_capacity(1_024);
    while let Some(first) = wire.read().await? {
        answers.clear();
        let mut next = Some(first);
        while let Some(message) = next {
            let line = wire.head(&message).split(|byte| *byte == b'\r').next().unwrap_or_default();
            let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            match answer(path, wire.body(&message), &book) {
                Answer::Ok => answers.extend_from_slice(OK),
                Answer::Hang => {
                    tokio::time::sleep(HANG).await;
                    answers.extend_from_slice(OK);
                }
                Answer::Throttle => answers.extend_from_slice(THROTTLE),
                Answer::Text(text) => answers.extend_from_slice(
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).as_bytes(),
                ),
            }
            next = wire.take()?;
        }
        wire.write(&answers).await?;
    }
    Ok(())
}

/// Notes one request and says what it is answered with.
fn answer(path: &[u8], body: &[u8], book: &Mutex<Book>) -> Answer {
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(destination) = path.strip_prefix(b"/ok/") {
        book.note(number(destination), body);
        return Answer::Ok;
    }
    if let Some(fan_out) = path.strip_prefix(b"/control/reset/") {
        *book = Book::new(number(fan_out));
        return Answer::Ok;
    }
    if path == b"/control/stats" {
        return Answer::Text(book.stats().to_json());
    }
    book.note_other();
    if path.starts_with(b"/hang/") { Answer::Hang } else { Answer::Throttle }
}

fn number(digits: &[u8]) -> u64 {
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
