//! Quiet hours: the times at which a destination wants to be left alone, and the first moment after them.
//!
//! A destination has up to 20 windows ([`Window`]). An instant is quiet iff the wall clock in a window's zone shows a
//! time in `[start, end)` of that window. Nothing else is defined, so nothing needs a rule of its own when clocks are
//! changed: an end that is skipped releases at the first instant after the gap, and a repeated hour is quiet each time
//! the clock shows quiet time. No local time is ever turned into an instant; only the reverse, which has one answer.
//!
//! The search for the next opening goes in strides: while the zone's offset stays, a window that covers an instant
//! covers all up to its end. So each stride ends at the farthest such end, or where that window's zone changes its
//! offset, and there the question is asked again. A stride is a few additions and one look-up of an offset.
//!
//! Which windows concern an event type is worked out once ([`QuietHours::mask_for`]) and all else takes that mask. The
//! gate that holds a delivery, the time it sleeps and the metric for a vanished zone belong to the callers.

mod openings;
mod window;

use crate::invalid::Invalid;
use crate::pattern::EventType;
use crate::time::{Millis, Timestamp};

pub use window::{Window, WindowSpec};

/// How far a search for an opening goes. A set of windows that passed [`QuietHours::new`] opens sooner.
const SEARCH_LIMIT: Millis = Millis::days(35);
/// How far ahead [`QuietHours::intervals`] and [`QuietHours::next_change`] look: past a year, so that a window which
/// only a change of the clocks brings about is found.
const HORIZON: Millis = Millis::days(400);

/// The windows of one destination. Without any, all questions are answered at once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QuietHours {
    windows: Vec<Window>,
}

/// Which of a destination's windows concern an event type. Good for the [`QuietHours`] that made it, and no other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WindowMask(u32);

impl WindowMask {
    /// No window: never quiet.
    pub const NONE: Self = Self(0);

    /// Whether no window concerns the type, so that it is never quiet.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The places of the windows in their list, in order.
    pub fn windows(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lowest = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            lowest
        })
    }
    const fn with(self, index: usize) -> Self {
        Self(self.0 | 1 << index)
    }
    const fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl QuietHours {
    /// The most windows that a destination may have. They fit the bits of a [`WindowMask`].
    pub const MAX_WINDOWS: usize = 20;

    /// No quiet hours at all.
    pub const fn none() -> Self {
        Self { windows: Vec::new() }
    }
    /// The windows of a destination as somebody writes them: at most 20, and for every event type they must leave an
    /// opening at least every three weeks, judged over two years from 2026 on. The fault's field is empty: the caller
    /// names it with [`Invalid::under`].
    pub fn new(windows: Vec<Window>) -> Result<Self, Invalid> {
        let hours = Self::restore(windows)?;
        openings::check(&hours)?;
        Ok(hours)
    }
    /// The windows of a destination as they were stored. They were checked when written; where newer time zone data has
    /// them leave no opening, [`release`](Self::release) still ends.
    pub fn restore(windows: Vec<Window>) -> Result<Self, Invalid> {
        if windows.len() > Self::MAX_WINDOWS {
            let allowed = format!("at most {} windows", Self::MAX_WINDOWS);
            return Err(Invalid::new("", format_args!("{} windows", windows.len()), allowed));
        }
        Ok(Self { windows })
    }

    /// Whether there are no windows.
    pub const fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
    /// The windows, in the order in which they were written.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }
    /// The zones of restored windows that the time zone data no longer knows. Such a window never closes: the caller
    /// warns, and counts it in `tidegate_schedule_errors_total`.
    pub fn unknown_zones(&self) -> impl Iterator<Item = &str> {
        self.windows
            .iter()
            .filter(|window| !window.is_zone_known())
            .map(|window| window.spec().timezone.as_str())
    }

    /// The windows that concern `event_type`: those whose `applies_to` is empty or matches, and whose bypass does not.
    pub fn mask_for(&self, event_type: &EventType) -> WindowMask {
        self.mask_of(|window| window.concerns(event_type))
    }
    /// The windows that concern an event whose type is not known: those without `applies_to`.
    pub fn mask_without_type(&self) -> WindowMask {
        self.mask_of(|window| window.is_zone_known() && window.applies_to().is_empty())
    }
    /// All windows, whichever types they concern.
    pub fn mask_of_all(&self) -> WindowMask {
        self.mask_of(Window::is_zone_known)
    }
    fn mask_of(&self, concerns: impl Fn(&Window) -> bool) -> WindowMask {
        let concerned = self.windows.iter().enumerate().filter(|(_, window)| concerns(window));
        concerned.fold(WindowMask::NONE, |mask, (i, _)| mask.with(i))
    }

    /// Whether one of the windows in `mask` covers `at`.
    pub fn is_quiet(&self, mask: WindowMask, at: Timestamp) -> bool {
        let second = second_of(at);
        self.among(mask).any(|window| window.covers(second))
    }

    /// When a hold that is on at `at` ends: `None` if `at` is not quiet, else the first instant after it that no window
    /// in `mask` covers. If there is none within 35 days or before [`Timestamp::MAX`], that limit: ask again then.
    pub fn release(&self, mask: WindowMask, at: Timestamp) -> Option<Timestamp> {
        let from = second_of(at);
        let closed_until = self.closed_until(mask, from)?;
        let limit = second_of(at + SEARCH_LIMIT);
        Some(instant(self.first_open(mask, closed_until, limit).unwrap_or(limit)))
    }

    /// Until when the verdict at `at`, quiet or open, surely holds; always later than `at`, but for [`Timestamp::MAX`].
    /// It is the very instant of the change, unless there is none within the search: 35 days if quiet, 400 if open.
    pub fn next_change(&self, mask: WindowMask, at: Timestamp) -> Timestamp {
        if mask.is_empty() {
            return Timestamp::MAX;
        }
        self.release(mask, at).unwrap_or_else(|| {
            let limit = second_of(at + HORIZON);
            instant(self.first_quiet(mask, second_of(at), limit).unwrap_or(limit))
        })
    }

    /// The next `count` quiet intervals that end after `from`, each `[start, end)` and with open time on both sides:
    /// windows that overlap or touch make one. An interval that contains `from` comes first, with its real start,
    /// looked for up to 35 days back. Fewer come back where no more begin within 400 days.
    pub fn intervals(&self, mask: WindowMask, from: Timestamp, count: usize) -> Vec<(Timestamp, Timestamp)> {
        let horizon = second_of(from + HORIZON);
        let earliest = second_of(from - SEARCH_LIMIT);
        let mut found = Vec::new();
        let mut open = second_of(from);
        while found.len() < count {
            let Some(quiet) = self.first_quiet(mask, open, horizon) else { break };
            let start = if found.is_empty() { self.closed_since(mask, quiet, earliest) } else { quiet };
            let limit = second_of(instant(quiet) + SEARCH_LIMIT);
            let end = self.first_open(mask, quiet, limit);
            found.push((instant(start), instant(end.unwrap_or(limit))));
            let Some(end) = end else { break };
            open = end;
        }
        found
    }

    fn among(&self, mask: WindowMask) -> impl Iterator<Item = &Window> {
        mask.windows().filter_map(|i| self.windows.get(i))
    }
    /// If `second` is quiet: how far it surely stays so. One stride, not the whole way.
    fn closed_until(&self, mask: WindowMask, second: i64) -> Option<i64> {
        let mut clock = None;
        let mut until = None;
        for window in self.among(mask) {
            clock = window.clock(second, clock);
            until = until.max(clock.as_mut().and_then(|clock| window.covers_until(clock)));
        }
        until
    }
    /// The first second in `from..limit` that no window covers.
    fn first_open(&self, mask: WindowMask, from: i64, limit: i64) -> Option<i64> {
        let mut second = from;
        while second < limit {
            match self.closed_until(mask, second) {
                Some(later) => second = later,
                None => return Some(second),
            }
        }
        None
    }
    /// The first second in `from..limit` that a window covers.
    fn first_quiet(&self, mask: WindowMask, from: i64, limit: i64) -> Option<i64> {
        let mut second = from;
        while second < limit {
            if self.among(mask).any(|window| window.covers(second)) {
                return Some(second);
            }
            second = self.among(mask).map(|window| window.keeps_until(second)).min()?;
        }
        None
    }
    /// The start of the quiet interval that holds `quiet`, but not before `earliest`.
    fn closed_since(&self, mask: WindowMask, quiet: i64, earliest: i64) -> i64 {
        let mut start = quiet;
        while start > earliest {
            let before = self.among(mask).filter_map(|window| window.covers_since(start - 1)).min();
            match before {
                Some(earlier) => start = earlier,
                None => return start,
            }
        }
        earliest
    }
}

/// The whole second that holds an instant. Windows are written in seconds and offsets are whole seconds, so all of it
/// has one verdict.
const fn second_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

/// The beginning of a second, held within what a [`Timestamp`] can say.
const fn instant(second: i64) -> Timestamp {
    Timestamp::from_millis(second.saturating_mul(1_000))
}

#[cfg(test)]
mod tests;
