//! Refuses windows that together leave an event type no moment to go.
//!
//! "No moment" is taken to mean: none for three weeks. One missing opening is nobody's fault (one hour a week may fall
//! into the gap when clocks go forward), but windows in several zones may open only in the part of the year in which
//! the zones are a certain number of hours apart, and a delivery does not live to see that. Looked at are two years from 2026 on, in
//! stretches of three weeks that begin every two, so that each moment of the two years is within 14 + 21 days of an
//! opening: that is the limit of [`QuietHours::release`]. The years are fixed, so that the answer does not depend on
//! when it is asked for.
//!
//! The types that exist are not known here. But a window concerns a type because patterns match it, and the names that
//! several patterns match are again those of one pattern, their meet. Of all names that a meet stands for, the one with
//! made-up segments for each `*` is held by the most windows, since any bypass that matches it includes the whole
//! meet. So it is enough to look at one mask for each meet of the patterns in `applies_to` lists.

use std::collections::HashSet;

use super::{QuietHours, SEARCH_LIMIT, WindowMask, instant, second_of};
use crate::invalid::Invalid;
use crate::pattern::Pattern;
use crate::time::{Millis, Timestamp};

/// 2026-01-01T00:00:00Z.
const FIRST_STRETCH: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const STRETCHES: i64 = 53;
const STRETCH_EVERY: Millis = Millis::days(14);
const STRETCH_LENGTH: Millis = Millis::days(21);
// What passes here must not run into the limit of the search.
const _: () = assert!(STRETCH_EVERY.get() + STRETCH_LENGTH.get() <= SEARCH_LIMIT.get());
/// Patterns that nest or exclude each other, as names do in practice, have no more meets than there are patterns:
/// 2,000 at most. Only patterns made to cross each other have more, and then the check must end.
const MAX_MEETS: usize = 4_096;

const ALLOWED: &str = "windows that leave an opening at least every three weeks for every event type; shorten one, \
                       or limit it with `days`, `applies_to` or `bypass_event_types`";

/// Refuses a set that is closed for three weeks on end for some event type.
pub(super) fn check(hours: &QuietHours) -> Result<(), Invalid> {
    // Windows only ever take openings away: if all of them together leave some, no type needs a closer look.
    let all = hours.mask_of(|_| true);
    if stretches().all(|(from, to)| hours.first_open(all, from, to).is_some()) {
        return Ok(());
    }
    let masks = masks_of_types(hours)?;
    for (from, to) in stretches() {
        let sets = covering_sets(hours, from, to);
        if masks.iter().any(|&mask| sets.iter().all(|set| set.overlaps(mask))) {
            return Err(Invalid::new(
                "",
                format_args!("closed all the time from {}", instant(from)),
                ALLOWED,
            ));
        }
    }
    Ok(())
}

/// The stretches of time that are looked at, as seconds.
fn stretches() -> impl Iterator<Item = (i64, i64)> {
    (0..STRETCHES).map(|i| {
        let from = FIRST_STRETCH + Millis::new(STRETCH_EVERY.get() * i);
        (second_of(from), second_of(from + STRETCH_LENGTH))
    })
}

/// All sets of windows that at some moment of `from..to` are the ones that cover it. A mask has an opening there iff it
/// has no window of one of these sets.
fn covering_sets(hours: &QuietHours, from: i64, to: i64) -> HashSet<WindowMask> {
    let mut sets = HashSet::new();
    let mut second = from;
    while second < to {
        sets.insert(hours.mask_of(|window| window.covers(second)));
        let change = hours.windows.iter().map(|window| window.keeps_until(second)).min();
        second = change.unwrap_or(to);
    }
    sets
}

/// Masks such that the mask of each event type is a part of one of them, and each is the mask of some type.
fn masks_of_types(hours: &QuietHours) -> Result<HashSet<WindowMask>, Invalid> {
    let mut meets = HashSet::from([Pattern::any()]);
    let written: HashSet<&Pattern> = hours.windows.iter().flat_map(|window| window.applies_to()).collect();
    for pattern in written {
        let narrower: Vec<_> = meets.iter().filter_map(|met| met.meet(pattern)).collect();
        meets.extend(narrower);
        if meets.len() > MAX_MEETS {
            let value = format_args!("over {MAX_MEETS} ways in which `applies_to` patterns overlap");
            return Err(Invalid::new(
                "",
                value,
                "fewer patterns, where the windows together cover all hours",
            ));
        }
    }
    Ok(meets.iter().map(|met| hours.mask_of(|window| window.concerns_all_of(met))).collect())
}
