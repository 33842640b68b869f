//! HTTP/1.1 with as little work as can be: messages with a `content-length` (or, for answers, chunks) over keep-alive
//! connections. Sink, relay and generator share two cores with the server, so what they save is what it can use.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is read at a time at least.
const READ: usize = 16 * 1024;

/// One connection and what was read from it but not yet taken.
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Where a message lies in the buffer of its wire. Good until the next one is read.
pub(crate) struct Message {
    head: Range<usize>,
    body: Range<usize>,
}

impl Wire {
    /// Speaks over a connection, which should send at once (`TCP_NODELAY`).
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; READ], start: 0, end: 0 }
    }

    pub(crate) async fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next message. None when the other side has closed between messages.
    pub(crate) async fn read(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if self.fill().await? == 0 {
                let between = self.start == self.end;
                return if between { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// A message that is wholly here already.
    pub(crate) fn take(&mut self) -> io::Result<Option<Message>> {
        let bytes = &self.buffer[self.start..self.end];
        let Some(head) = position(bytes, b"\r\n\r\n").map(|at| at + 4) else { return Ok(None) };
        let (body, whole) = match framing(&bytes[..head])? {
            Framing::Length(length) => (length, head + length),
            Framing::Chunked => match position(&bytes[head..], b"0\r\n\r\n") {
                Some(at) => (at, head + at + 5),
                None => return Ok(None),
            },
        };
        if whole > bytes.len() {
            return Ok(None);
        }
        let head = self.start..self.start + head;
        let body = head.end..head.end + body;
        self.start += whole;
        Ok(Some(Message { head, body }))
    }

    pub(crate) fn head(&self, message: &Message) -> &[u8] {
        &self.buffer[message.head.clone()]
    }

    pub(crate) fn body(&self, message: &Message) -> &[u8] {
        &self.buffer[message.body.clone()]
    }

    /// The status code of an answer.
    pub(crate) fn status(&self, message: &Message) -> u16 {
        let digits = self.head(message).get(9..12).unwrap_or_default();
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < READ / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() - self.end < READ {
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
        }
        let read = self.stream.read(&mut self.buffer[self.end..]).await?;
        self.end += read;
        Ok(read)
    }
}

enum Framing {
    Length(usize),
    Chunked,
}

fn framing(head: &[u8]) -> io::Result<Framing> {
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            return length.map(Framing::Length).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Ok(Framing::Chunked);
        }
    }
    Ok(Framing::Length(0))
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_taken_whole_and_one_after_the_other() -> io::Result<()> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let mut near = Wire::connect(&listener.local_addr()?.to_string()).await?;
        let mut far = Wire::new(listener.accept().await?.0);
        far.write(
            b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 429 x\r\n\r\nHTTP/1.1 200 OK\r\n",
        )
        .await?;
        let message = near.read().await?.expect("it was sent");
        assert_eq!((near.status(&message), near.body(&message)), (202, &b"abc"[..]));
        let message = near.read().await?.expect("it was sent");
        assert_eq!((near.status(&message), near.body(&message)), (429, &b""[..]));
        assert!(near.take()?.is_none());
        let large = vec![b'x'; 300_000];
        far.write(b"content-length: 300000\r\n\r\n").await?;
        let (sent, message) = tokio::join!(far.write(&large), near.read());
        sent?;
        assert_eq!(near.body(&message?.expect("it was sent")), large);
        drop(far);
        assert!(near.read().await?.is_none());
        Ok(())
    }
}
