//! What an answer means. Decided once, when the header block is complete, and never flattened into text.

mod code;

use std::fmt;

use crate::time::Millis;
#[cfg(test)]
pub(crate) use code::tests::any_outcome;

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 2xx: delivered.
    Success {
        /// The status they gave.
        status: u16,
    },
    /// 429: the whole destination waits; the delivery goes back to its place and has used no attempt.
    RateLimited {
        /// Their `Retry-After`, parsed and clamped.
        retry_after: Option<Millis>,
    },
    /// 503 with a valid `Retry-After`: the whole destination waits, and so does this delivery's retry.
    Unavailable {
        /// Their `Retry-After`, parsed and clamped.
        retry_after: Millis,
    },
    /// 410: they never want it again.
    Gone,
    /// Any other 4xx or 5xx.
    HttpError {
        /// The status they gave.
        status: u16,
    },
    /// 3xx: never followed.
    Redirect {
        /// The status they gave.
        status: u16,
    },
    /// No complete header block within the attempt's time.
    Timeout,
    /// No HTTP answer at all.
    NetworkError(NetworkFault),
    /// The target may not be sent to: its address, or plain http where the operator insists on https. Nothing was sent.
    Blocked,
    /// We shut down before an answer came.
    Cancelled,
}

/// Where on the way an attempt without an answer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// The name has no address.
    NameNotFound,
    /// Our own resolver gave no verdict: no fault of the destination.
    ResolverDown,
    /// Nobody listens, or no way there.
    Connect,
    /// No common ground in TLS, or a certificate that does not hold.
    Tls,
    /// The connection broke before the answer was complete.
    Reset,
    /// A kept-alive connection was closed just as we sent on it.
    ReusedConnectionClosed,
    /// What came back is not HTTP, or beyond its limits.
    BadResponse,
}

/// What an outcome says about the destination's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// It works.
    Success,
    /// It does not.
    Failure,
    /// It says nothing about the destination: it concerns the event, the pace, or us.
    Neutral,
}

impl Outcome {
    /// What a complete response head means. `retry_after` is the parsed header, if there was a valid one.
    pub fn classify(status: u16, retry_after: Option<Millis>) -> Self {
        match (status, retry_after) {
            (200..=299, _) => Self::Success { status },
            (300..=399, _) => Self::Redirect { status },
            (410, _) => Self::Gone,
            (429, _) => Self::RateLimited { retry_after },
            (503, Some(retry_after)) => Self::Unavailable { retry_after },
            _ => Self::HttpError { status },
        }
    }

    /// The word for it in API, log and metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::RateLimited { .. } => "rate_limited",
            Self::Unavailable { .. } => "unavailable",
            Self::Gone => "gone",
            Self::HttpError { .. } => "http_error",
            Self::Redirect { .. } => "redirect",
            Self::Timeout => "timeout",
            Self::NetworkError(_) => "network_error",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status they answered with, if they answered.
    pub const fn status(&self) -> Option<u16> {
        match *self {
            Self::Success { status } | Self::HttpError { status } | Self::Redirect { status } => Some(status),
            Self::RateLimited { .. } => Some(429),
            Self::Unavailable { .. } => Some(503),
            Self::Gone => Some(410),
            Self::Timeout | Self::NetworkError(_) | Self::Blocked | Self::Cancelled => None,
        }
    }

    /// What it says about the destination: a 401, 403, 404 or 407 concerns every event there, another 4xx only this one.
    pub const fn bearing(&self) -> Bearing {
        match *self {
            Self::Success { .. } => Bearing::Success,
            Self::HttpError { status: 401 | 403 | 404 | 407 } => Bearing::Failure,
            Self::HttpError { status: 400..=499 } => Bearing::Neutral,
            Self::RateLimited { .. } | Self::Gone | Self::Cancelled => Bearing::Neutral,
            Self::NetworkError(NetworkFault::ResolverDown) => Bearing::Neutral,
            Self::HttpError { .. }
            | Self::Unavailable { .. }
            | Self::Redirect { .. }
            | Self::Timeout
            | Self::NetworkError(_)
            | Self::Blocked => Bearing::Failure,
        }
    }

    /// Whether it counts against `max_attempts`. Their 429 and our shutdown do not.
    pub const fn uses_attempt(&self) -> bool {
        !matches!(self, Self::RateLimited { .. } | Self::Cancelled)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.status()) {
            (Self::Blocked, _) => f.write_str("address not allowed"),
            (Self::NetworkError(fault), _) => write!(f, "{fault}"),
            (_, Some(status)) => write!(f, "status {status}"),
            (_, None) => f.write_str(self.word()),
        }
    }
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameNotFound => "name not found",
            Self::ResolverDown => "no answer from the name server",
            Self::Connect => "connection failed",
            Self::Tls => "TLS failed",
            Self::Reset => "connection broken",
            Self::ReusedConnectionClosed => "kept-alive connection closed",
            Self::BadResponse => "not a valid HTTP answer",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_means_what_the_table_says() {
        let after = Some(Millis::seconds(9));
        for (status, retry_after, word, bearing, uses) in [
            (200, None, "success", Bearing::Success, true),
            (204, after, "success", Bearing::Success, true),
            (299, None, "success", Bearing::Success, true),
            (301, None, "redirect", Bearing::Failure, true),
            (308, after, "redirect", Bearing::Failure, true),
            (400, None, "http_error", Bearing::Neutral, true),
            (401, None, "http_error", Bearing::Failure, true),
            (403, None, "http_error", Bearing::Failure, true),
            (404, None, "http_error", Bearing::Failure, true),
            (407, None, "http_error", Bearing::Failure, true),
            (408, None, "http_error", Bearing::Neutral, true),
            (410, None, "gone", Bearing::Neutral, true),
            (418, None, "http_error", Bearing::Neutral, true),
            (425, None, "http_error", Bearing::Neutral, true),
            (429, None, "rate_limited", Bearing::Neutral, false),
            (429, after, "rate_limited", Bearing::Neutral, false),
            (500, None, "http_error", Bearing::Failure, true),
            (500, after, "http_error", Bearing::Failure, true),
            (503, None, "http_error", Bearing::Failure, true),
            (503, after, "unavailable", Bearing::Failure, true),
            (999, None, "http_error", Bearing::Failure, true),
            (199, None, "http_error", Bearing::Failure, true),
        ] {
            let outcome = Outcome::classify(status, retry_after);
            assert_eq!(
                (outcome.word(), outcome.bearing(), outcome.uses_attempt()),
                (word, bearing, uses),
                "{status}"
            );
            assert_eq!(outcome.status(), Some(status));
        }
    }
}
