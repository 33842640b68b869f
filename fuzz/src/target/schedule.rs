//! Quiet hours, as somebody writes them.
//!
//! Laws: whoever is held is let go, within the 35 days that a search goes, and at a moment that is not quiet; the next change is
//! always ahead; intervals lie in order, apart, and what they say agrees with what is asked moment by moment; and a moment is quiet
//! exactly when a clock on the wall there shows quiet time, by a calendar that knows nothing of strides.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use tidegate::reading;
use tidegate_core::pattern::EventType;
use tidegate_core::quiet::{QuietHours, WindowMask, WindowSpec};
use tidegate_core::time::{Millis, Timestamp};

/// From 2026 on two years are looked at when windows are written: what holds in them is promised.
const FROM: i64 = 1_767_225_600_000;
const SPAN: u64 = 2 * 365 * 86_400_000;
const LONGEST: Millis = Millis::days(35);
const SEVENTH: u64 = 7 * 86_400_000 + 3_601_000;

/// Input: the body of a preview. From its bytes come the moments that are asked for, too.
pub fn run(data: &[u8]) {
    let hours = match reading::schedule(data) {
        Ok(hours) => hours,
        Err(refusal) => return assert!(matches!(refusal.status, 400 | 422), "{refusal:?}"),
    };
    let chance = data.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    let types = ["order.created", "payment.failed", "a"].map(|name| EventType::parse(name).expect("a name"));
    let masks = types.iter().map(|event_type| (Some(event_type), hours.mask_for(event_type)));
    for (event_type, mask) in masks.chain([(None, hours.mask_without_type())]) {
        for step in 0..6 {
            let offset = chance.wrapping_add(step * SEVENTH) % SPAN;
            let at = Timestamp::from_millis(FROM + i64::try_from(offset).expect("two years"));
            check(&hours, mask, at);
            if let Some(event_type) = event_type {
                assert_eq!(hours.is_quiet(mask, at), is_quiet(&hours, event_type, at), "{at}");
            }
        }
    }
}

fn check(hours: &QuietHours, mask: WindowMask, at: Timestamp) {
    let release = hours.release(mask, at);
    assert_eq!(release.is_some(), hours.is_quiet(mask, at), "{at}");
    assert!(hours.next_change(mask, at) > at);
    if let Some(release) = release {
        assert!(at < release && release - at <= LONGEST, "{at} to {release}");
        assert!(!hours.is_quiet(mask, release), "{release} is open");
        assert!(hours.is_quiet(mask, release - Millis::new(1)), "and the moment before is not");
    }
    let intervals = hours.intervals(mask, at, 3);
    for (start, end) in &intervals {
        assert!(start < end && *end > at);
        assert!(hours.is_quiet(mask, *start) && hours.is_quiet(mask, *end - Millis::new(1)));
    }
    assert!(intervals.windows(2).all(|pair| pair[0].1 < pair[1].0), "apart, and in order");
    if let Some(release) = release {
        assert_eq!(intervals.first().map(|(_, end)| *end), Some(release));
    }
}

/// Whether one of the windows that concern the type shows quiet time on its own wall clock.
fn is_quiet(hours: &QuietHours, event_type: &EventType, at: Timestamp) -> bool {
    hours
        .windows()
        .iter()
        .filter(|window| window.concerns(event_type))
        .any(|window| covers(window.spec(), at))
}

fn covers(spec: &WindowSpec, at: Timestamp) -> bool {
    let zone = TimeZone::get(&spec.timezone).expect("a zone that was accepted");
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).expect("a year of four digits");
    let shown = zone.to_datetime(at);
    let clock = format!("{:02}:{:02}:{:02}", shown.hour(), shown.minute(), shown.second());
    // Times of the day in two digits compare as texts do.
    let (start, end) = (with_seconds(&spec.quiet_start), with_seconds(&spec.quiet_end));
    let began = |weekday: Weekday| spec.days.is_empty() || spec.days.iter().any(|day| day == name(weekday));
    let (today, yesterday) = (shown.weekday(), shown.weekday().previous());
    if start < end {
        return began(today) && start <= clock && clock < end;
    }
    began(today) && start <= clock || began(yesterday) && clock < end
}

fn with_seconds(text: &str) -> String {
    if text.len() == 5 { format!("{text}:00") } else { text.to_owned() }
}

fn name(weekday: Weekday) -> &'static str {
    ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        [usize::from(weekday.to_monday_zero_offset().unsigned_abs())]
}
