//! How a destination limits those who call it.

use std::time::{Duration, UNIX_EPOCH};

use tidegate_core::time::{Millis, Timestamp};

use super::Response;

/// So many requests per window; windows follow each other without a gap, counted from 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limiter {
    limit: u32,
    window: Millis,
    says: Says,
    number: i64,
    used: u32,
    /// How many requests it refused.
    pub refused: u64,
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

impl Limiter {
    /// At most `limit` requests per `window`.
    pub const fn new(limit: u32, window: Millis, says: Says) -> Self {
        Self { limit, window, says, number: i64::MIN, used: 0, refused: 0 }
    }

    /// `response`, unless the limit is used up.
    pub fn judge(&mut self, now: Timestamp, response: Response) -> Response {
        let number = now.as_millis().div_euclid(self.window.get());
        if number != self.number {
            (self.number, self.used) = (number, 0);
        }
        let reset = (number + 1) * self.window.get();
        let allowed = self.used < self.limit;
        if allowed {
            self.used += 1;
        } else {
            self.refused += 1;
        }
        let seconds = (reset - now.as_millis() + 999) / 1_000;
        let mut response = if allowed {
            response
        } else {
            Response { retry_after: self.retry_after(reset, seconds), ..Response::plain(429) }
        };
        if self.says == Says::Headers {
            response.rate_limit = vec![
                ("RateLimit-Limit", self.limit.to_string()),
                ("RateLimit-Remaining", (self.limit - self.used).to_string()),
                ("RateLimit-Reset", seconds.to_string()),
            ];
        }
        response
    }

    fn retry_after(&self, reset: i64, seconds: i64) -> Option<String> {
        match self.says {
            Says::Nothing => None,
            Says::Seconds | Says::Headers => Some(seconds.to_string()),
            Says::HttpDate => {
                // Dates have whole seconds: a date of the last second would be early.
                let at = u64::try_from((reset + 999) / 1_000).unwrap_or(0);
                Some(httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at)))
            }
        }
    }
}
