//! The generator: closed loops that publish as fast as they are answered, and an open loop at a given rate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use crate::stack::{Line, Stack, Target};
use crate::stopwatch::{now, shared_nanos};

/// Makes requests of several events each.
pub(crate) trait Requests: Clone + 'static {
    /// Where they go.
    fn target(&self) -> Target;
    /// Events in each request.
    fn events(&self) -> u64;
    /// The body for the events with these numbers (`first ..`), sent at this time.
    fn body(&self, first: u64, sent_at: u64) -> Vec<u8>;
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
    /// Counts the answer to a request of so many events.
    fn note(&mut self, (status, body): (u16, Bytes), events: u64) {
        if (200..300).contains(&status) {
            self.accepted += events;
            return;
        }
        self.refused += 1;
        if self.refusal.is_empty() {
            self.refusal = format!("{status} {}", String::from_utf8_lossy(&body));
        }
    }

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
    stack: Stack,
    connections: usize,
    time: Duration,
    requests: R,
) -> Result<Sent> {
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(Line::connect(stack, &requests.target()).await?);
    }
    let (began, began_at, next) = (now(), shared_nanos(), Rc::new(Cell::new(0_u64)));
    let local = LocalSet::new();
    let mut tasks = JoinSet::new();
    for mut line in lines {
        let (requests, next) = (requests.clone(), next.clone());
        let publish = async move {
            let mut sent = Sent::default();
            while began.elapsed() < time {
                let first = next.get();
                next.set(first + requests.events());
                sent.note(line.post(requests.body(first, 0)).await?, requests.events());
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
    stack: Stack,
    per_second: f64,
    time: Duration,
    requests: R,
) -> Result<Sent> {
    // More than ever wait for their answer at once, so that none waits for a connection.
    const CONNECTIONS: usize = 32;
    let (local, mut tasks, mut queues) = (LocalSet::new(), JoinSet::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let (sender, queue) = unbounded_channel();
        let publish = publish(Line::connect(stack, &requests.target()).await?, queue, requests.clone());
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
    mut line: Line,
    mut queue: UnboundedReceiver<u64>,
    requests: R,
) -> Result<Sent> {
    let mut sent = Sent::default();
    while let Some(number) = queue.recv().await {
        let body = requests.body(number * requests.events(), shared_nanos());
        sent.note(line.post(body).await?, requests.events());
    }
    Ok(sent)
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
