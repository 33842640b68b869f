//! Makes one attempt: one HTTP request, at most once on the wire, with one deadline over all of it.
//!
//! The deadline covers the name, the connection, TLS, the request and the complete head of the response; the outcome
//! is decided there. The body is read for the log alone, within what is left of the time, and cannot change it.
//! Nothing is followed (redirects), taken from the environment (proxies), kept (cookies) or tried a second time.
//!
//! [`Endpoint`] is where to send, made once for each change of a destination. Its connections are kept under a
//! [`Pool`]; a destination that gets another URL needs a new one.
//! When to send, and what becomes of the delivery, is decided by the dispatcher and the rules.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};
use tokio::time::{Instant, timeout_at};

use crate::resolver::Resolver;

mod answer;
mod compose;
mod connect;
mod connection;
mod endpoint;
mod fault;
mod http2;
mod idle;
mod message;
mod stream;

pub use answer::Answer;
pub use compose::{Shown, ShownValue};
pub use connect::{RootsFault, trusted_roots};
pub use endpoint::{Auth, Endpoint, Envelope, Settings, SigningKey};
pub use idle::Pool;
pub use message::Request;
pub use rustls::RootCertStore;

use answer::Reading;
use compose::Signed;
use connect::{Connector, public_roots};
use connection::{Exchanged, Protocol, Unanswered};
use fault::Fault;
use idle::Idle;

/// Idle connections kept where nobody says otherwise.
const DEFAULT_IDLE_LIMIT: usize = 1_024;

/// What a sender needs to know besides the request.
#[derive(Debug)]
pub struct SenderConfig {
    /// Finds and vets addresses.
    pub resolver: Resolver,
    /// Whose certificates are trusted: see [`trusted_roots`].
    pub roots: RootCertStore,
    /// Whether the head and body of successes are kept for the log too.
    pub keep_success_bodies: bool,
    /// Idle connections kept over all destinations.
    pub idle_limit: usize,
    /// The addresses that we ourselves listen on: refused as destinations, so that no event goes in a circle.
    pub own_addresses: Vec<SocketAddr>,
    /// Refuse http, also of destinations that were made while it was allowed.
    pub https_only: bool,
}

impl SenderConfig {
    /// The usual: trusts the public web's authorities, keeps failures only.
    pub fn new(resolver: Resolver) -> Self {
        Self {
            resolver,
            roots: public_roots(),
            keep_success_bodies: false,
            idle_limit: DEFAULT_IDLE_LIMIT,
            own_addresses: Vec::new(),
            https_only: false,
        }
    }
}

/// Makes attempts. One for the whole node; all methods may be called at once.
#[derive(Debug)]
pub struct Sender {
    connector: Connector,
    idle: Idle,
    keep_success_bodies: bool,
    https_only: bool,
}

impl Sender {
    /// A sender, ready.
    pub fn new(config: SenderConfig) -> Self {
        let SenderConfig { resolver, roots, keep_success_bodies, idle_limit, own_addresses, https_only } =
            config;
        let connector = Connector::new(resolver, roots, own_addresses);
        Self { connector, idle: Idle::new(idle_limit), keep_success_bodies, https_only }
    }

    /// Makes one attempt. Never fails: whatever happens is an outcome. Dropping the future breaks the attempt off and
    /// closes its connection.
    pub async fn send(&self, pool: &Pool, request: Request) -> Answer {
        let started = Instant::now();
        let timeout = Duration::from_millis(u64::try_from(request.timeout.get()).unwrap_or(0));
        let deadline = started + timeout;
        let exchanged = timeout_at(deadline, self.exchange(pool, &request, deadline)).await;
        let elapsed = since(started);
        match exchanged {
            Ok(Ok(exchanged)) => self.read(pool, request.now, exchanged, elapsed, deadline).await,
            Ok(Err(fault)) => Answer::without_answer(fault.outcome(), elapsed, &fault.sentence()),
            Err(_) => {
                // A shared connection that went silent would fail every attempt after this one, too.
                self.idle.forget_shared(pool);
                Answer::without_answer(Outcome::Timeout, elapsed, "no answer in time")
            }
        }
    }

    /// Closes connections that were idle for too long. To be called about once a second.
    pub fn close_idle(&self) {
        self.idle.close_expired(Instant::now());
    }

    /// Idle connections that are kept, over all destinations.
    pub fn idle_connections(&self) -> usize {
        self.idle.count()
    }

    /// Sends on a kept connection if there is one that is still open, else on a new one.
    async fn exchange(&self, pool: &Pool, request: &Request, deadline: Instant) -> Result<Exchanged, Fault> {
        let signed = Signed::new(request);
        while let Some(connection) = self.idle.take(pool, Instant::now()) {
            match connection.exchange(|protocol| signed.compose(request, protocol)).await {
                Ok(exchanged) => return Ok(exchanged),
                // It had been closed before anything was written: this was no attempt yet.
                Err(Unanswered { unsent: true, .. }) => self.idle.forget_shared(pool),
                Err(Unanswered { unusable, protocol, .. }) => {
                    self.idle.forget_shared(pool);
                    return Err(match protocol {
                        Protocol::Http1 => Fault::of_reused(unusable),
                        Protocol::Http2 => Fault::of_fresh(unusable),
                    });
                }
            }
        }
        // A kept connection has passed here when it was opened.
        if self.https_only && !request.endpoint.target.is_https() {
            return Err(Fault::Insecure);
        }
        // On the heap: it is rare, and would make every attempt's task several times as large.
        let connection = Box::pin(self.connector.connect(&request.endpoint.target, deadline)).await?;
        let exchanged = connection.exchange(|protocol| signed.compose(request, protocol)).await;
        exchanged.map_err(|Unanswered { breach, unusable, .. }| {
            breach.map_or_else(|| Fault::of_fresh(unusable), Fault::Tls)
        })
    }

    /// The outcome stands; reads what the log keeps, and keeps the connection if it can carry another request.
    async fn read(
        &self,
        pool: &Pool,
        sent_at: Timestamp,
        exchanged: Exchanged,
        elapsed: Millis,
        deadline: Instant,
    ) -> Answer {
        let Exchanged { head, body, mut connection } = exchanged;
        let reading = Reading::new(head, sent_at + elapsed, elapsed, self.keep_success_bodies);
        let deadline = deadline.min(Instant::now() + reading.patience());
        // What came in time is kept, also where the rest did not.
        let mut read = BytesMut::new();
        let whole = timeout_at(deadline, connection.read(body, reading.body_limit(), &mut read)).await;
        let whole = whole.unwrap_or(false);
        if !connection.settle() {
            self.idle.forget_shared(pool);
        } else if whole {
            self.idle.put(pool, connection, Instant::now());
        }
        reading.answer(&read.freeze())
    }
}

fn since(started: Instant) -> Millis {
    Millis::new(i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX))
}
