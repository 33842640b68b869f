//! How late a receiver is to see what was sent to it, on this machine: J of the checker.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::clock::{millis, nanos, pass};
use crate::receiver::{PROBE, header};

/// J is no less. In a calm stretch a request is seen within a millisecond or two; under load, with two cores for the server,
/// its producers, its receivers and whatever else the machine does, a thread may wait this long for its turn.
const FLOOR: Duration = millis(100);
/// Requests of a measurement.
const PROBES: u32 = 100;
/// An answer is shorter.
const LONGEST_ANSWER: usize = 512;

/// The longest of many, or the floor, in whole milliseconds.
pub(crate) async fn measure(receiver: SocketAddr) -> Result<Duration> {
    let mut probe = Probe::connect(receiver).await?;
    let mut longest = Duration::ZERO;
    for _ in 0..PROBES {
        longest = longest.max(probe.once().await?);
        pass(millis(1)).await;
    }
    let rounded = millis(u64::try_from(longest.as_millis())? + 1);
    Ok(rounded.max(FLOOR))
}

/// A connection on which a receiver is asked when it saw the question.
pub(crate) struct Probe(TcpStream);

impl Probe {
    pub(crate) async fn connect(receiver: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(receiver).await?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// How long one took.
    pub(crate) async fn once(&mut self) -> Result<Duration> {
        let sent = nanos();
        self.0.write_all(format!("{PROBE}HTTP/1.1\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::with_capacity(LONGEST_ANSWER);
        while !answer.ends_with(b"\r\n\r\n") {
            let more = self.0.read_buf(&mut answer).await?;
            ensure!(more > 0 && answer.len() < LONGEST_ANSWER, "a receiver does not answer us");
        }
        let seen: u64 = header(std::str::from_utf8(&answer)?, "seen").context("it says when")?.parse()?;
        Ok(Duration::from_nanos(seen.saturating_sub(sent)))
    }
}
