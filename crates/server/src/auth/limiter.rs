//! A bounded table of token buckets, one for each address or key that was seen lately.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use tidegate_core::time::Mono;

/// Entries at most: when they are all in use, all are forgotten, which helps nobody who comes from one address.
const MOST: usize = 20_000;

/// So many at once, then so many each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) burst: u32,
    pub(super) per_second: u32,
}

/// Keeps each `K` to a [`Limit`].
pub(super) struct Limiter<K> {
    limit: Limit,
    /// When each one's bucket will be full again, in microseconds of the monotonic clock.
    full_at: Mutex<HashMap<K, i64>>,
}

impl<K: Hash + Eq> Limiter<K> {
    pub(super) fn new(limit: Limit) -> Self {
        Self { limit, full_at: Mutex::new(HashMap::new()) }
    }

    /// Takes one token of `key`, or says after how many seconds there will be one.
    pub(super) fn take(&self, now: Mono, key: K) -> Result<(), u32> {
        let now = now.as_millis().saturating_mul(1_000);
        let step = 1_000_000 / i64::from(self.limit.per_second.max(1));
        let most = step.saturating_mul(i64::from(self.limit.burst));
        let mut table = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= MOST && !table.contains_key(&key) {
            table.retain(|_, full_at| *full_at > now);
            if table.len() >= MOST {
                table.clear();
            }
        }
        let full_at = table.entry(key).or_insert(now);
        let after = (*full_at).max(now).saturating_add(step);
        let over = after - now - most;
        if over > 0 {
            let seconds = (over - 1) / 1_000_000 + 1;
            return Err(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
        *full_at = after;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_burst_one_passes_each_second() {
        let limiter = Limiter::new(Limit { burst: 3, per_second: 1 });
        let at = Mono::from_millis;
        for _ in 0..3 {
            assert_eq!(limiter.take(at(0), 1), Ok(()));
        }
        assert_eq!(limiter.take(at(0), 1), Err(1));
        assert_eq!(limiter.take(at(0), 2), Ok(()));
        assert_eq!(limiter.take(at(1_000), 1), Ok(()));
        assert!(limiter.take(at(1_000), 1).is_err());
        assert_eq!(limiter.take(at(4_000), 1), Ok(()));
    }

    #[test]
    fn the_table_stays_bounded() {
        let limiter = Limiter::new(Limit { burst: 1, per_second: 1 });
        for key in 0..3 * MOST {
            let _ = limiter.take(Mono::from_millis(0), key);
        }
        assert!(limiter.full_at.lock().unwrap().len() <= MOST);
    }
}
