//! `tidegate-bench sink`: the receiver of all measurements, a process of its own on one thread.
//!
//! The path says how it behaves: `/ok/N` answers 200 at once, `/hang/N` after ten seconds, `/throttle/N` answers 429. `N` is
//! the destination. `/control/…` is for the benchmark: what was received, and starting over.

mod book;

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpListener;

use crate::wire::{Message, Wire};
use book::Book;
pub(crate) use book::Stats;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const THROTTLE: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n";
const HANG: Duration = Duration::from_secs(10);

/// Serves until it is killed. The first line of its output is its address.
pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let book = Arc::new(Mutex::new(Book::new(1)));
    loop {
        let (stream, _) = listener.accept().await?;
        let book = book.clone();
        tokio::spawn(async move {
            // An error means that the sender went away.
            let _ = serve(Wire::new(stream)?, &book).await;
            io::Result::Ok(())
        });
    }
}

async fn serve(mut wire: Wire, book: &Mutex<Book>) -> io::Result<()> {
    let mut answers = Vec::with_capacity(1_024);
    while let Some(first) = wire.read().await? {
        answers.clear();
        let mut next = Some(first);
        while let Some(message) = next {
            let hangs = answer(&wire, &message, book, &mut answers);
            if hangs {
                tokio::time::sleep(HANG).await;
            }
            next = wire.take()?;
        }
        wire.write(&answers).await?;
    }
    Ok(())
}

/// Notes one request and adds its answer. Says whether the answer has to wait.
fn answer(wire: &Wire, message: &Message, book: &Mutex<Book>, answers: &mut Vec<u8>) -> bool {
    let line = wire.head(message).split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(destination) = path.strip_prefix(b"/ok/") {
        book.note(number(destination), wire.body(message));
        answers.extend_from_slice(OK);
        return false;
    }
    if let Some(fan_out) = path.strip_prefix(b"/control/reset/") {
        *book = Book::new(number(fan_out));
        answers.extend_from_slice(OK);
        return false;
    }
    if path == b"/control/stats" {
        let text = book.stats().to_json();
        answers.extend_from_slice(
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).as_bytes(),
        );
        return false;
    }
    book.note_other();
    let hangs = path.starts_with(b"/hang/");
    answers.extend_from_slice(if hangs { OK } else { THROTTLE });
    hangs
}

fn number(digits: &[u8]) -> u64 {
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
