//! Connections kept for the next attempt: few seconds, bounded over all destinations, the oldest closed first.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;

/// How long an HTTP/1.1 connection is kept. Servers close theirs after 5 s or more; one that closes just as we send
/// costs an attempt, so we are well before it.
const HTTP1_KEPT: Duration = Duration::from_secs(3);
/// How long an HTTP/2 connection is kept: its peer says when it is going to close.
const HTTP2_KEPT: Duration = Duration::from_secs(30);

/// The name under which one destination's connections are kept. A destination that gets another URL needs a new one.
#[derive(Debug)]
pub struct Pool(u64);

impl Default for Pool {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// When it is closed, and a number that no other kept connection has.
type Key = (Instant, u64);

pub(super) struct Idle {
    kept: Mutex<Kept>,
    limit: usize,
}

#[derive(Default)]
struct Kept {
    /// Connections by pool, the one used last at the end. A pool that is empty stays for a moment: its next one is soon back.
    by_pool: HashMap<u64, Vec<(Key, Connection)>>,
    /// Endpoints by the time at which a connection of theirs is closed.
    by_time: BTreeMap<Key, u64>,
    next: u64,
}

impl Idle {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: Mutex::default(), limit }
    }

    /// The connection of this pool that was used last and is not too old. An HTTP/2 connection stays, for others to
    /// share.
    pub(super) fn take(&self, pool: &Pool, now: Instant) -> Option<Connection> {
        let mut closed = Vec::new();
        let mut kept = self.lock();
        loop {
            let (key, connection) = kept.by_pool.get(&pool.0)?.last()?;
            let key = *key;
            match connection {
                _ if key.0 <= now => closed.extend(kept.remove(pool.0, key)),
                Connection::Http2(shared) => return Some(Connection::Http2(shared.clone())),
                Connection::Http1(_) => return kept.remove(pool.0, key),
            }
        }
    }

    /// Keeps a connection. Closes what is too old, and the oldest if there are too many.
    pub(super) fn put(&self, pool: &Pool, connection: Connection, now: Instant) {
        let shared = matches!(connection, Connection::Http2(_));
        let until = now + if shared { HTTP2_KEPT } else { HTTP1_KEPT };
        let mut closed = Vec::new();
        let mut kept = self.lock();
        if shared {
            // One is enough, and this one was just seen to work.
            closed.extend(kept.remove_shared(pool.0));
        }
        kept.next += 1;
        let key = (until, kept.next);
        kept.by_time.insert(key, pool.0);
        kept.by_pool.entry(pool.0).or_default().push((key, connection));
        kept.expire(now, self.limit, &mut closed);
        drop(kept); // closing sockets needs no lock
    }

    /// Forgets the HTTP/2 connection to this pool; whoever uses it still does.
    pub(super) fn forget_shared(&self, pool: &Pool) {
        let forgotten = self.lock().remove_shared(pool.0);
        drop(forgotten);
    }

    pub(super) fn close_expired(&self, now: Instant) {
        let mut closed = Vec::new();
        let mut kept = self.lock();
        kept.expire(now, self.limit, &mut closed);
        kept.by_pool.retain(|_, connections| !connections.is_empty());
        drop(kept);
    }

    pub(super) fn count(&self) -> usize {
        self.lock().by_time.len()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, pool: u64, key: Key) -> Option<Connection> {
        self.by_time.remove(&key);
        let connections = self.by_pool.get_mut(&pool)?;
        let at = connections.iter().rposition(|(known, _)| *known == key)?;
        Some(connections.remove(at).1)
    }

    fn remove_shared(&mut self, pool: u64) -> Option<Connection> {
        let connections = self.by_pool.get(&pool)?;
        let shared = connections.iter().find(|(_, known)| matches!(known, Connection::Http2(_)));
        let key = shared?.0;
        self.remove(pool, key)
    }

    fn expire(&mut self, now: Instant, limit: usize, closed: &mut Vec<Connection>) {
        while let Some((&key, &pool)) = self.by_time.first_key_value()
            && (key.0 <= now || self.by_time.len() > limit)
        {
            closed.extend(self.remove(pool, key));
        }
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").field("count", &self.count()).field("limit", &self.limit).finish()
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::super::stream::Stream;
    use super::*;

    async fn connection(to: &TcpListener) -> Connection {
        let tcp = TcpStream::connect(to.local_addr().unwrap()).await.unwrap();
        Connection::http1(Stream::plain(tcp)).await.unwrap()
    }

    #[tokio::test]
    async fn a_connection_is_given_out_once_and_only_while_it_is_young() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (idle, pool, now) = (Idle::new(10), Pool::default(), Instant::now());
        idle.put(&pool, connection(&listener).await, now);
        idle.put(&pool, connection(&listener).await, now);
        let almost = now + HTTP1_KEPT - Duration::from_millis(1);
        assert!(idle.take(&Pool::default(), almost).is_none());
        assert!(idle.take(&pool, almost).is_some());
        assert_eq!(idle.count(), 1);
        assert!(idle.take(&pool, now + HTTP1_KEPT).is_none());
        idle.close_expired(now + HTTP1_KEPT);
        assert_eq!((idle.count(), idle.lock().by_pool.len()), (0, 0));
    }
}
