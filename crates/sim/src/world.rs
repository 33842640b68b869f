//! Modelled destinations: how long they take, what they limit, when they fail.
//!
//! A model answers a request with a delay and what a real server would send: a status and headers as text, which then
//! go through the same parsers as in the server.

mod buffer;
mod latency;
mod limiter;
mod trouble;

pub use buffer::Buffer;
pub use latency::Latency;
pub use limiter::{Limiter, Says};
pub use trouble::{Outages, Trouble, TroubleKind};

use tidegate_core::lane::Report;
use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::rate_headers::{self, RateHint};
use tidegate_core::retry_after;
use tidegate_core::time::{Millis, Timestamp};

use crate::chance::Chance;

/// A destination as the world makes it.
#[derive(Clone, Debug)]
pub struct Model {
    /// How long it takes when it is well.
    pub latency: Latency,
    /// What it limits.
    pub limiter: Option<Limiter>,
    /// What it has room for.
    pub buffer: Option<Buffer>,
    /// When and how it fails.
    pub troubles: Vec<Trouble>,
    /// The share of requests that it takes and never answers, even when it is well: a restart, a dropped connection.
    pub lost_share: f64,
    /// Requests that it can work on at once; one more is answered 503.
    pub max_parallel: Option<u32>,
    /// The status it gives when it is well.
    pub status: u16,
}

impl Model {
    /// A destination that takes `latency` and never fails.
    pub fn healthy(latency: Latency) -> Self {
        Self {
            latency,
            limiter: None,
            buffer: None,
            troubles: Vec::new(),
            lost_share: 0.0,
            max_parallel: None,
            status: 200,
        }
    }
    /// The same with a limiter.
    #[must_use]
    pub fn limited(mut self, limiter: Limiter) -> Self {
        self.limiter = Some(limiter);
        self
    }
    /// The same with room for so much.
    #[must_use]
    pub fn buffered(mut self, buffer: Buffer) -> Self {
        self.buffer = Some(buffer);
        self
    }
    /// The same with troubles.
    #[must_use]
    pub fn troubled(mut self, troubles: Vec<Trouble>) -> Self {
        self.troubles = troubles;
        self
    }
    /// The same, never answering this share of the requests.
    #[must_use]
    pub fn losing(mut self, share: f64) -> Self {
        self.lost_share = share;
        self
    }

    /// What a request that arrives at `now` gets, with `others` requests there already and our patience at `timeout`.
    pub fn answer(&mut self, now: Timestamp, others: u32, timeout: Millis, chance: &mut Chance) -> Answer {
        // Troubles are in order of time and do not overlap: those that are over are dropped as time passes.
        while self.troubles.first().is_some_and(|trouble| trouble.to <= now) {
            self.troubles.remove(0);
        }
        let trouble = self.troubles.first().filter(|trouble| trouble.from <= now).map(|trouble| trouble.kind);
        let usual = self.latency.sample(chance);
        let mut response = Response::plain(self.status);
        let mut takes = Some(usual);
        match trouble.map(|kind| kind.at(now)) {
            None | Some(TroubleKind::None) => {}
            Some(TroubleKind::Hangs) => takes = None,
            Some(TroubleKind::Slow { factor }) => takes = Some(usual.scaled(i64::from(factor), 100)),
            Some(TroubleKind::Refuses) => return Answer::error(Millis::new(1), NetworkFault::Connect),
            Some(TroubleKind::Errors { status }) => response = Response::plain(status),
            Some(TroubleKind::Unavailable { retry_after }) => {
                response = Response {
                    retry_after: Some(format!("{}", retry_after.get() / 1_000)),
                    ..Response::plain(503)
                };
            }
            Some(TroubleKind::Flaps { .. }) => unreachable!("resolved by `at`"),
        }
        if self.lost_share > 0.0 && chance.happens(self.lost_share) {
            takes = None;
        }
        if self.max_parallel.is_some_and(|most| others >= most) {
            response = Response::plain(503);
        } else if trouble.is_none() {
            if let Some(limiter) = &mut self.limiter {
                response = limiter.judge(now, response);
            }
            if self.buffer.as_mut().is_some_and(|buffer| response.status < 400 && !buffer.takes(now)) {
                response = Response::plain(503);
            }
        }
        Answer::of(now, &response, takes, timeout)
    }
}

/// What a server puts on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// `RateLimit-*` headers.
    pub rate_limit: Vec<(&'static str, String)>,
}

impl Response {
    /// A status, and nothing else.
    pub const fn plain(status: u16) -> Self {
        Self { status, retry_after: None, rate_limit: Vec::new() }
    }
}

/// What comes back, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// As the sender sees it.
    pub report: Report,
    /// Whether waiting longer would have brought a success: then a timeout was false.
    pub would_succeed: bool,
}

impl Answer {
    fn error(after: Millis, fault: NetworkFault) -> Self {
        let report = Report { outcome: Outcome::NetworkError(fault), elapsed: after, rate_hint: None };
        Self { report, would_succeed: false }
    }

    fn of(now: Timestamp, response: &Response, takes: Option<Millis>, timeout: Millis) -> Self {
        let elapsed = takes.filter(|takes| *takes <= timeout);
        let Some(elapsed) = elapsed else {
            let report = Report { outcome: Outcome::Timeout, elapsed: timeout, rate_hint: None };
            return Self { report, would_succeed: takes.is_some() && (200..300).contains(&response.status) };
        };
        let at = now + elapsed;
        let retry_after =
            response.retry_after.as_deref().and_then(|value| retry_after::parse(value.as_bytes(), None, at));
        let outcome = Outcome::classify(response.status, retry_after);
        Self { report: Report { outcome, elapsed, rate_hint: hint(response, at) }, would_succeed: false }
    }
}

fn hint(response: &Response, at: Timestamp) -> Option<RateHint> {
    if response.rate_limit.is_empty() {
        return None;
    }
    rate_headers::parse(response.rate_limit.iter().map(|(name, value)| (*name, value.as_bytes())), None, at)
}
