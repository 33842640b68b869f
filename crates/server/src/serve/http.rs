//! Connections: bounded in number, each with a time for its headers, all ended in good order.
//!
//! ```text
//!   stop ──► nobody new gets in ──► who is in, or at the door, is answered: "connection: close" ──► the rest is closed
//! ```
//!
//! A connection that is closed just as its client writes gets a reset instead of an answer. So the last calls have a moment
//! in which connections stay open, and each is closed by its answer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::response::Response;
use hyper::Version;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::Service;

use super::{door, unread};
use crate::auth::Peer;
use crate::config::Config;

/// Whoever needs longer for the head of a request holds a connection and asks nothing.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Requests at a time on one HTTP/2 connection.
const MAX_STREAMS: u32 = 250;
/// Where the system has no more handles, a moment must pass before the next try.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);
/// A client that uses its connection at all uses it within this time, and learns by the answer that it was the last.
const LAST_CALL: Duration = Duration::from_millis(500);

/// How far the stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Each answer is its connection's last.
    LastCall,
    /// Who has not asked by now is sent away.
    Closing,
}

/// Accepts connections and answers them.
pub(super) struct Server {
    listener: TcpListener,
    guests: Guests,
}

/// All who are connected.
struct Guests {
    router: Router,
    builder: Arc<Builder<TokioExecutor>>,
    slots: Arc<Semaphore>,
    most: u32,
    addresses: Arc<Addresses>,
    stage: watch::Sender<Stage>,
    graceful: GracefulShutdown,
}

/// Connections that were open when the server stopped accepting.
pub(super) struct Left(Guests);

impl Left {
    /// Lets calls that come in the next moment or are under way end, for so long.
    pub(super) async fn end(self, limit: Duration) {
        let Guests { slots, most, stage, graceful, .. } = self.0;
        let all_gone = slots.acquire_many(most);
        if tokio::time::timeout(LAST_CALL.min(limit), all_gone).await.is_ok() {
            return;
        }
        stage.send_replace(Stage::Closing);
        if tokio::time::timeout(limit, graceful.shutdown()).await.is_err() {
            tracing::warn!("some calls did not end in time and are cut off");
        }
    }
}

impl Server {
    pub(super) fn new(listener: StdListener, router: Router, config: &Config) -> anyhow::Result<Self> {
        listener.set_nonblocking(true).context("the listening socket")?;
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
        let most = most_connections(config.max_connections, getrlimit(Resource::Nofile).current);
        if most < config.max_connections {
            tracing::warn!(
                max_connections = config.max_connections,
                taken = most,
                "half of the files that may be open are fewer than the connections that are allowed: raise the limit (ulimit -n)"
            );
        }
        let guests = Guests {
            router,
            builder: Arc::new(builder),
            slots: Arc::new(Semaphore::new(most as usize)),
            most,
            addresses: Arc::new(Addresses::new(config.max_connections_per_address)),
            stage: watch::Sender::new(Stage::Open),
            graceful: GracefulShutdown::new(),
        };
        Ok(Self { listener: TcpListener::from_std(listener).context("the listening socket")?, guests })
    }

    /// Accepts until `stop` returns.
    pub(super) async fn run(self, stop: impl Future<Output = ()>) -> Left {
        tokio::pin!(stop);
        loop {
            let slot = Arc::clone(&self.guests.slots).acquire_owned();
            let accepted = async {
                let slot = slot.await;
                (slot, self.listener.accept().await)
            };
            tokio::select! {
                () = &mut stop => return self.close().await,
                (slot, accepted) = accepted => match (slot, accepted) {
                    (Ok(slot), Ok((stream, peer))) => self.guests.take(stream, peer, slot),
                    (_, Err(error)) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
                    }
                    (Err(_), _) => return self.close().await,
                },
            }
        }
    }

    /// Lets nobody new in, and takes those who had come to the door by then.
    async fn close(self) -> Left {
        let Self { listener, guests } = self;
        guests.stage.send_replace(Stage::LastCall);
        let take = |stream, peer| match Arc::clone(&guests.slots).try_acquire_owned() {
            Ok(slot) => guests.take(stream, peer, slot),
            Err(_) => tracing::debug!(%peer, "no more connections"),
        };
        if let Err(error) = door::shut(listener, take).await {
            tracing::debug!(%error, "clients that connected at this moment may see a reset");
        }
        Left(guests)
    }
}

impl Guests {
    fn take(&self, stream: TcpStream, peer: SocketAddr, slot: OwnedSemaphorePermit) {
        let Some(place) = self.addresses.enter(peer.ip()) else {
            tracing::debug!(%peer, "too many connections from one address");
            return;
        };
        // Small answers must not wait for more to come.
        let _still_works = stream.set_nodelay(true);
        let (builder, router) = (Arc::clone(&self.builder), self.router.clone());
        let (mut stage, watcher) = (self.stage.subscribe(), self.graceful.watcher());
        tokio::spawn(async move {
            let _held = (slot, place);
            // A connection on which nothing ever comes would not even get as far as the header timeout. That it is said to
            // be readable is no sign: only a byte is.
            let mut first = [0];
            let asks = tokio::select! {
                asks = tokio::time::timeout(HEADER_TIME, stream.peek(&mut first)) => matches!(asks, Ok(Ok(1))),
                _ = stage.wait_for(|stage| *stage == Stage::Closing) => false,
            };
            if !asks {
                return;
            }
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(Peer(peer));
                let (stage, version) = (stage.clone(), request.version());
                let (request, lender) = unread::lend(request);
                let answered = router.clone().call(request);
                async move {
                    let response = lender.finish(answered.await?).await;
                    Ok::<_, Infallible>(say_last(response, version, *stage.borrow()))
                }
            });
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%peer, error = %error, "a connection ended badly");
            }
        });
    }
}

/// As many as were asked for, but no more than half of the files that may be open: deliveries and the store need theirs, however
/// many stand at the door. None: as many files as there can be.
fn most_connections(wanted: u32, files: Option<u64>) -> u32 {
    let half = files.map_or(u64::MAX, |files| files / 2);
    wanted.min(u32::try_from(half).unwrap_or(u32::MAX)).max(1)
}

/// Tells a client that its connection ends with this answer. HTTP/2 has a frame of its own for that.
fn say_last(mut response: Response, version: Version, stage: Stage) -> Response {
    if stage != Stage::Open && version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Counts the connections of each address.
struct Addresses {
    most: u32,
    open: Mutex<HashMap<IpAddr, u32>>,
}

/// A connection's place in the count; dropped, it is free again.
struct Place(Arc<Addresses>, IpAddr);

impl Addresses {
    fn new(most: u32) -> Self {
        Self { most, open: Mutex::new(HashMap::new()) }
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place(Arc::clone(self), address))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_half_of_the_files_that_may_be_open() {
        for (wanted, files, expected) in [
            (10_000, Some(1_048_576), 10_000),
            (10_000, None, 10_000),
            (10_000, Some(256), 128),
            (100, Some(256), 100),
            (10_000, Some(1), 1),
        ] {
            assert_eq!(most_connections(wanted, files), expected, "{wanted} of {files:?}");
        }
    }

    #[test]
    fn one_address_cannot_take_every_connection() {
        let addresses = Arc::new(Addresses::new(2));
        let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let first = addresses.enter(one);
        let second = addresses.enter(one);
        assert!(first.is_some() && second.is_some() && addresses.enter(one).is_none());
        assert!(addresses.enter(other).is_some());
        drop(first);
        assert!(addresses.enter(one).is_some());
        drop(second);
        assert!(addresses.open.lock().unwrap().is_empty());
    }
}
