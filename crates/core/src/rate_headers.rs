//! What a destination says of its own limits: the `RateLimit` headers of its answers.
//!
//! There was never one form of them, so all that are in use are read:
//!
//! - three fields, `RateLimit-Limit`, `-Remaining` and `-Reset` (IETF draft-ietf-httpapi-ratelimit-headers up to 06),
//!   also as `X-RateLimit-*` and `X-Rate-Limit-*`, the limit perhaps followed by its policies: `100, 100;w=60`;
//! - one dictionary (draft 07): `RateLimit: limit=100, remaining=50, reset=30`, with `RateLimit-Policy: 100;w=60`;
//! - a list by name (draft 08 on): `RateLimit: "default";r=50;t=30`, with `RateLimit-Policy: "default";q=100;w=60`.
//!
//! It is hearsay: what cannot be read is passed over, never an error. The result is a hint for pacing; what to make of
//! it is left to the adaptive rate, and a wait that must be kept comes by `Retry-After`.

use std::cmp::Ordering;

use crate::limits::MAX_RETRY_AFTER;
use crate::retry_after::{their_now, whole_number};
use crate::time::{Millis, Timestamp};

#[cfg(test)]
mod tests;

/// Counts above this are nonsense or mean "no limit", and are passed over.
pub const MOST_REQUESTS: u64 = 1_000_000_000;
/// A longer time until a reset is taken as this: an answer within the day will say it again.
pub const LONGEST_RESET: Millis = MAX_RETRY_AFTER;
/// Longer windows are passed over. Not cut short: a month's quota read as a day's would be thirty times the rate.
pub const LONGEST_WINDOW: Millis = Millis::days(366);

/// A reset above this is no length of time (30 years) but seconds since 1970, and a thousand times that milliseconds.
const EPOCH_SECONDS_ABOVE: i64 = 1_000_000_000;
const EPOCH_MILLIS_ABOVE: i64 = EPOCH_SECONDS_ABOVE * 1_000;
/// Members read of a header, and kept of all of them: real ones have one to three, and each is compared with each policy.
const MOST_MEMBERS: usize = 16;

/// The limit that binds us most, as the destination tells it. At least one field is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateHint {
    /// Requests allowed in one window: 1 to [`MOST_REQUESTS`].
    pub limit: Option<u64>,
    /// Requests left until the reset; never more than the limit.
    pub remaining: Option<u64>,
    /// Time until the quota is full again: zero to [`LONGEST_RESET`].
    pub reset: Option<Millis>,
    /// Length of a window: 1 s to [`LONGEST_WINDOW`].
    pub window: Option<Millis>,
}

/// Reads all headers of an answer, names in any case; `None` if nothing in them is a limit.
///
/// `date` is the answer's own `Date`: a reset given as a time is one of their clock, as in [`retry_after`](crate::retry_after::parse).
/// Of several limits the one that leaves the fewest requests per time counts, and the hint holds its figures only. One
/// that says what is left, or until when, goes before one that is merely announced. Quotas of other things than
/// requests (`qu="content-bytes"`) are no limit here. Of a repeated plain field the first readable one counts.
pub fn parse<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    date: Option<&[u8]>,
    now: Timestamp,
) -> Option<RateHint> {
    let mut heard = Heard::default();
    let now = their_now(date, now);
    for (name, value) in headers {
        if let Ok(value) = str::from_utf8(value) {
            heard.take(name, value, now);
        }
    }
    heard.tightest()
}

/// All that the headers said, before it is put together.
#[derive(Default)]
struct Heard<'a> {
    plain: RateHint,
    prefixed: RateHint,
    dictionary: RateHint,
    named: Vec<(&'a str, RateHint)>,
    policies: Vec<Policy<'a>>,
}

/// A quota as announced: `"default";q=100;w=60`, or `100;w=60` in the older drafts.
struct Policy<'a> {
    name: &'a str,
    of_requests: bool,
    limit: Option<u64>,
    window: Option<Millis>,
}

impl<'a> Heard<'a> {
    fn take(&mut self, name: &str, value: &'a str, now: Timestamp) {
        let name = name.to_ascii_lowercase();
        let (family, rest) = match name.strip_prefix("x-") {
            Some(rest) => (&mut self.prefixed, rest),
            None => (&mut self.plain, name.as_str()),
        };
        let field = rest.strip_prefix("ratelimit").or_else(|| rest.strip_prefix("rate-limit"));
        match field {
            Some("") => self.take_figures(value, now),
            Some("-policy") => self.take_policies(value),
            Some("-limit") => {
                family.set("limit", head(value), now);
                self.take_policies(value);
            }
            Some("-remaining") => family.set("remaining", head(value), now),
            Some("-reset") => family.set("reset", head(value), now),
            _ => {}
        }
    }

    /// The value of `RateLimit` itself: a dictionary or a list by name.
    fn take_figures(&mut self, value: &'a str, now: Timestamp) {
        for member in split(value, ',').take(MOST_MEMBERS) {
            let name = head(member);
            if let Some((key, figure)) = name.split_once('=')
                && !name.starts_with('"')
            {
                self.dictionary.set(key, figure, now);
            } else if let Some(remaining) = parameter(member, "r").and_then(requests)
                && self.named.len() < MOST_MEMBERS
            {
                let reset = parameter(member, "t").and_then(|t| time_to_reset(t, now));
                self.named
                    .push((name, RateHint { remaining: Some(remaining), reset, ..RateHint::default() }));
            }
        }
    }

    fn take_policies(&mut self, value: &'a str) {
        let room = MOST_MEMBERS - self.policies.len();
        self.policies.extend(split(value, ',').take(room).map(|member| Policy {
            name: head(member),
            of_requests: parameter(member, "qu").is_none_or(|unit| unit.trim_matches('"') == "requests"),
            limit: quota(parameter(member, "q").unwrap_or(head(member))),
            window: parameter(member, "w").and_then(window),
        }));
    }

    /// Joins figures with the policies they belong to, by name or by limit, and gives the tightest.
    fn tightest(self) -> Option<RateHint> {
        let unnamed = [self.plain, self.prefixed, self.dictionary].into_iter().map(|hint| {
            let same = |p: &&Policy| p.of_requests && p.limit.is_some() && p.limit == hint.limit;
            RateHint { window: self.policies.iter().filter(same).find_map(|p| p.window), ..hint }
        });
        let named = self.named.iter().filter_map(|(name, hint)| {
            match self.policies.iter().find(|policy| policy.name == *name) {
                Some(policy) if !policy.of_requests => None,
                Some(Policy { limit, window, .. }) => {
                    Some(RateHint { limit: *limit, window: *window, ..*hint })
                }
                None => Some(*hint),
            }
        });
        let announced = self.policies.iter().filter(|policy| policy.of_requests && policy.limit.is_some());
        let announced =
            announced.map(|p| RateHint { limit: p.limit, window: p.window, ..RateHint::default() });
        let mut tightest = unnamed
            .chain(named)
            .chain(announced)
            .filter(|hint| hint.limit.is_some() || hint.is_live())
            .min_by(RateHint::by_tightness)?;
        if let (Some(limit), Some(remaining)) = (tightest.limit, &mut tightest.remaining) {
            *remaining = limit.min(*remaining);
        }
        Some(tightest)
    }
}

impl RateHint {
    fn set(&mut self, key: &str, figure: &str, now: Timestamp) {
        match key.trim() {
            "limit" => self.limit = self.limit.or(quota(figure)),
            "remaining" => self.remaining = self.remaining.or(requests(figure)),
            "reset" => self.reset = self.reset.or(time_to_reset(figure, now)),
            _ => {}
        }
    }
    fn is_live(&self) -> bool {
        self.remaining.is_some() || self.reset.is_some()
    }
    /// Requests, and the milliseconds they must last. A length nobody told is a second, so that only a quota that
    /// is used up is tight without one.
    fn pace(&self) -> (i128, i128) {
        let (count, span) = match self.remaining {
            Some(remaining) => (remaining, self.reset.or(self.window)),
            None => (self.limit.unwrap_or(MOST_REQUESTS), self.window.or(self.reset)),
        };
        (i128::from(count), i128::from(span.unwrap_or(Millis::seconds(1)).get().max(1)))
    }
    /// Live figures first, then the fewest requests per time; among the used up, the longest to go.
    fn by_tightness(&self, other: &Self) -> Ordering {
        let ((a, a_ms), (b, b_ms)) = (self.pace(), other.pace());
        other.is_live().cmp(&self.is_live()).then((a * b_ms).cmp(&(b * a_ms))).then(b_ms.cmp(&a_ms))
    }
}

fn requests(text: &str) -> Option<u64> {
    whole_number(text.as_bytes()).and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= MOST_REQUESTS)
}

fn quota(text: &str) -> Option<u64> {
    requests(text).filter(|n| *n > 0)
}

fn window(text: &str) -> Option<Millis> {
    let length = Millis::seconds(whole_number(text.as_bytes())?);
    (Millis::ZERO < length && length <= LONGEST_WINDOW).then_some(length)
}

fn time_to_reset(text: &str, now: Timestamp) -> Option<Millis> {
    let length = match whole_number(text.as_bytes())? {
        ms if ms > EPOCH_MILLIS_ABOVE => Timestamp::from_millis(ms) - now,
        s if s > EPOCH_SECONDS_ABOVE => Timestamp::from_millis(Millis::seconds(s).get()) - now,
        s => Millis::seconds(s),
    };
    Some(length.clamp(Millis::ZERO, LONGEST_RESET))
}

/// What a member, or the first member of a list, says before its parameters.
fn head(text: &str) -> &str {
    split(text, ',').flat_map(|member| split(member, ';')).next().unwrap_or_default()
}

fn parameter<'a>(member: &'a str, key: &str) -> Option<&'a str> {
    split(member, ';')
        .skip(1)
        .find_map(|part| part.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v))
}

/// The parts between separators, except within quotes: a name may hold any of them.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.split(move |c| {
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && quoted && !escaped;
        c == separator && !quoted
    });
    parts.map(str::trim)
}
