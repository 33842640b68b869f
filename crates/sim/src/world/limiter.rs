//! How a destination limits those who call it.

use std::time::{Duration, UNIX_EPOCH};

use tidegate_core::time::{Millis, Timestamp};

use super::Response;

/// So many requests per time, counted in one of two ways, with a choice of what it tells about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limiter {
    limit: u32,
    window: Millis,
    says: Says,
    count: Count,
    /// The limit becomes another one, then.
    change: Option<(Timestamp, u32)>,
    /// How many requests it refused.
    pub refused: u64,
}

/// How it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// In windows that follow each other without a gap, counted from 1970.
    Window { number: i64, used: u32 },
    /// In a bucket of `burst` tokens. The level is in parts of a token, as many as the window has milliseconds, so that
    /// each millisecond adds as many as the limit says.
    Bucket { burst: u32, level: i64, at: Option<Timestamp> },
}

/// What it tells the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// 429 and nothing else.
    Nothing,
    /// `Retry-After` in seconds.
    Seconds,
    /// `Retry-After` as a date.
    HttpDate,
    /// `RateLimit-Limit`, `-Remaining` and `-Reset` on every answer, and `Retry-After` with the 429.
    Headers,
}

/// Where a limiter stands after a request.
struct Standing {
    allowed: bool,
    remaining: u32,
    /// When one more would be allowed, had this been the last.
    next: i64,
    /// When all of it is there again.
    reset: i64,
}

impl Limiter {
    /// At most `limit` requests per `window`, by fixed windows.
    pub const fn new(limit: u32, window: Millis, says: Says) -> Self {
        Self {
            limit,
            window,
            says,
            count: Count::Window { number: i64::MIN, used: 0 },
            change: None,
            refused: 0,
        }
    }
    /// The same rate by a token bucket that holds `burst`, full at first.
    pub const fn bucket(limit: u32, window: Millis, burst: u32, says: Says) -> Self {
        let count = Count::Bucket { burst, level: burst as i64 * window.get(), at: None };
        Self { limit, window, says, count, change: None, refused: 0 }
    }
    /// The same, but from `at` on with another limit.
    #[must_use]
    pub const fn changing(mut self, at: Timestamp, limit: u32) -> Self {
        self.change = Some((at, limit));
        self
    }

    /// `response`, unless the limit is used up.
    pub fn judge(&mut self, now: Timestamp, response: Response) -> Response {
        if let Some((_, limit)) = self.change.take_if(|(at, _)| *at <= now) {
            self.limit = limit;
        }
        let standing = self.stand(now);
        let mut response = if standing.allowed {
            response
        } else {
            self.refused += 1;
            Response { retry_after: self.retry_after(now, standing.next), ..Response::plain(429) }
        };
        if self.says == Says::Headers {
            response.rate_limit = vec![
                ("RateLimit-Limit", self.limit.to_string()),
                ("RateLimit-Remaining", standing.remaining.to_string()),
                ("RateLimit-Reset", seconds_to(now, standing.reset).to_string()),
            ];
        }
        response
    }

    /// Counts a request at `now`.
    fn stand(&mut self, now: Timestamp) -> Standing {
        let (ms, window, limit) = (now.as_millis(), self.window.get(), i64::from(self.limit));
        match &mut self.count {
            Count::Window { number, used } => {
                if ms.div_euclid(window) != *number {
                    (*number, *used) = (ms.div_euclid(window), 0);
                }
                let allowed = *used < self.limit;
                *used += u32::from(allowed);
                let reset = (*number + 1) * window;
                Standing { allowed, remaining: self.limit.saturating_sub(*used), next: reset, reset }
            }
            Count::Bucket { burst, level, at } => {
                let full = i64::from(*burst) * window;
                let gained = at.map_or(0, |at| (now - at).get().max(0).saturating_mul(limit));
                *level = level.saturating_add(gained).min(full);
                *at = Some(now);
                let allowed = *level >= window;
                *level -= if allowed { window } else { 0 };
                let time_for = |parts: i64| ms + (parts.max(0) + limit - 1) / limit.max(1);
                Standing {
                    allowed,
                    remaining: u32::try_from(*level / window).unwrap_or(0),
                    next: time_for(window - *level),
                    reset: time_for(full - *level),
                }
            }
        }
    }

    fn retry_after(&self, now: Timestamp, next: i64) -> Option<String> {
        match self.says {
            Says::Nothing => None,
            Says::Seconds | Says::Headers => Some(seconds_to(now, next).to_string()),
            Says::HttpDate => {
                // Dates have whole seconds: a date of the last second would be early.
                let at = u64::try_from((next + 999) / 1_000).unwrap_or(0);
                Some(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at)))
            }
        }
    }
}

/// Whole seconds, rounded up: a shorter word would be early.
fn seconds_to(now: Timestamp, then: i64) -> i64 {
    (then - now.as_millis() + 999) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn status(limiter: &mut Limiter, ms: i64) -> u16 {
        limiter.judge(at(ms), Response::plain(200)).status
    }

    #[test]
    fn a_window_allows_its_limit_and_begins_anew_on_the_minute() {
        let mut limiter = Limiter::new(2, Millis::minutes(1), Says::Seconds);
        assert_eq!([59_000, 59_500].map(|ms| status(&mut limiter, ms)), [200, 200]);
        let refused = limiter.judge(at(59_700), Response::plain(200));
        assert_eq!((refused.status, refused.retry_after.as_deref()), (429, Some("1")));
        assert_eq!([60_000, 60_001, 60_002].map(|ms| status(&mut limiter, ms)), [200, 200, 429]);
        assert_eq!(limiter.refused, 2);
    }

    #[test]
    fn a_bucket_allows_its_burst_and_then_its_rate() {
        let mut limiter = Limiter::bucket(60, Millis::minutes(1), 3, Says::Headers);
        assert_eq!(
            [0, 0, 0, 0, 999, 1_000, 1_500].map(|ms| status(&mut limiter, ms)),
            [200, 200, 200, 429, 429, 200, 429]
        );
        let allowed = limiter.judge(at(3_500), Response::plain(200));
        let told: Vec<&str> = allowed.rate_limit.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(told, ["60", "1", "2"], "the limit, what is left, and the time until the bucket is full");
    }

    #[test]
    fn a_limit_changes_when_its_time_has_come() {
        let mut limiter = Limiter::new(1, Millis::minutes(1), Says::Nothing).changing(at(60_000), 2);
        assert_eq!(
            [0, 1, 60_000, 60_001, 60_002].map(|ms| status(&mut limiter, ms)),
            [200, 429, 200, 200, 429]
        );
    }
}
