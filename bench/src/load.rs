//! The generator: closed loops that publish as fast as they are answered, and an open loop at a given rate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use crate::stopwatch::{now, shared_nanos};
use crate::wire::Wire;

/// Makes the request for the events with these numbers (`first ..`), sent at this time, at the end of the buffer.
pub(crate) trait Requests: Clone + 'static {
    /// Events in each request.
    fn events(&self) -> u64;
    /// Writes the whole request.
    fn write(&mut self, first: u64, sent_at: u64, buffer: &mut Vec<u8>);
}

/// What a generator did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// Events that were answered with 2xx.
    pub(crate) accepted: u64,
    /// Requests that were answered otherwise.
    pub(crate) refused: u64,
    /// The first of those answers.
    pub(crate) refusal: String,
    /// When the first request went, on the shared clock.
    pub(crate) began_at: u64,
    /// How long it went on, in seconds.
    pub(crate) took: f64,
}

impl Sent {
    /// Fails if anything was refused.
    pub(crate) fn all_accepted(self) -> Result<Self> {
        if self.refused > 0 {
            bail!("{} requests were refused, the first with {}", self.refused, self.refusal);
        }
        Ok(self)
    }
}

/// Publishes over so many connections, each one request after the other, for a while.
pub(crate) async fn closed<R: Requests>(
    address: &str,
    connections: usize,
    time: Duration,
    requests: R,
) -> Result<Sent> {
    let mut wires = Vec::new();
    for _ in 0..connections {
        wires.push(Wire::connect(address).await?);
    }
    let (began, began_at, next) = (now(), shared_nanos(), Rc::new(Cell::new(0_u64)));
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for mut wire in wires {
        let (mut requests, next) = (requests.clone(), next.clone());
        let publish = async move {
            let (mut sent, mut buffer) = (Sent::default(), Vec::new());
            while began.elapsed() < time {
                let first = next.get();
                next.set(first + requests.events());
                buffer.clear();
                requests.write(first, 0, &mut buffer);
                exchange(&mut wire, &buffer, requests.events(), &mut sent).await?;
            }
            anyhow::Ok(sent)
        };
        tasks.spawn_local_on(publish, &local);
    }
    local
        .run_until(total(tasks, began_at))
        .await
        .map(|sent| Sent { took: began.elapsed().as_secs_f64(), ..sent })
}

/// Publishes at a rate, whether or not the earlier ones have been answered; each carries its time of sending.
pub(crate) async fn open<R: Requests>(
    address: &str,
    per_second: f64,
    time: Duration,
    requests: R,
) -> Result<Sent> {
    // More than ever wait for their answer at once, so that none waits for a connection.
    const CONNECTIONS: usize = 32;
    let (local, mut tasks, mut queues) = (LocalSet::new(), JoinSet::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let (sender, queue) = unbounded_channel();
        let publish = publish(Wire::connect(address).await?, queue, requests.clone());
        tasks.spawn_local_on(publish, &local);
        queues.push(sender);
    }
    let (began, began_at) = (tokio::time::Instant::now(), shared_nanos());
    let pace = async move {
        let mut number = 0_u64;
        loop {
            let due = Duration::from_secs_f64(number as f64 / per_second);
            if due >= time {
                break;
            }
            tokio::time::sleep_until(began + due).await;
            let index = usize::try_from(number).unwrap_or(0) % CONNECTIONS;
            let _ = queues[index].send(number);
            number += 1;
        }
    };
    local.spawn_local(pace);
    local
        .run_until(total(tasks, began_at))
        .await
        .map(|sent| Sent { took: began.elapsed().as_secs_f64(), ..sent })
}

async fn publish<R: Requests>(
    mut wire: Wire,
    mut queue: UnboundedReceiver<u64>,
    mut requests: R,
) -> Result<Sent> {
    let (mut sent, mut buffer) = (Sent::default(), Vec::new());
    while let Some(number) = queue.recv().await {
        buffer.clear();
        requests.write(number * requests.events(), shared_nanos(), &mut buffer);
        exchange(&mut wire, &buffer, requests.events(), &mut sent).await?;
    }
    Ok(sent)
}

async fn exchange(wire: &mut Wire, request: &[u8], events: u64, sent: &mut Sent) -> Result<()> {
    wire.write(request).await?;
    let Some(answer) = wire.read().await? else { bail!("the connection was closed without an answer") };
    let status = wire.status(&answer);
    if (200..300).contains(&status) {
        sent.accepted += events;
    } else {
        sent.refused += 1;
        if sent.refusal.is_empty() {
            sent.refusal = format!("{status} {}", String::from_utf8_lossy(wire.body(&answer)));
        }
    }
    Ok(())
}

async fn total(mut tasks: JoinSet<Result<Sent>>, began_at: u64) -> Result<Sent> {
    let mut total = Sent { began_at, ..Sent::default() };
    while let Some(sent) = tasks.join_next().await {
        let sent = sent??;
        total.accepted += sent.accepted;
        total.refused += sent.refused;
        if total.refusal.is_empty() {
            total.refusal = sent.refusal;
        }
    }
    Ok(total)
}
