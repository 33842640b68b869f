//! `delivery_schedule`: quiet hours as they are written.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use utoipa::ToSchema;

use super::Reading;

/// One window of quiet hours. An instant is quiet if the wall clock of the zone shows a time in `[quiet_start,
/// quiet_end)`; an end before the start is on the next day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeliverySchedule)]
pub(crate) struct ScheduleDocument {
    /// A name of the IANA time zone database.
    #[schema(example = "America/Chicago")]
    pub(crate) timezone: String,
    /// `HH:MM` or `HH:MM:SS`: the first quiet second.
    #[schema(example = "00:00")]
    pub(crate) quiet_start: String,
    /// Likewise, the first second that is open again; `24:00` is the end of the day.
    #[schema(example = "06:00")]
    pub(crate) quiet_end: String,
    /// The days on which the window starts, `mon` to `sun`; none: every day.
    #[serde(default)]
    pub(crate) days: Vec<String>,
    /// Patterns of the event types that it holds; none: all.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(crate) applies_to: Vec<String>,
    /// Patterns of the event types that it does not hold, whatever `applies_to` says.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub(crate) bypass_event_types: Vec<String>,
}

impl From<&ScheduleDocument> for WindowSpec {
    fn from(document: &ScheduleDocument) -> Self {
        let ScheduleDocument { timezone, quiet_start, quiet_end, days, applies_to, bypass_event_types } =
            document.clone();
        Self { timezone, quiet_start, quiet_end, days, applies_to, bypass_event_types }
    }
}

impl From<&WindowSpec> for ScheduleDocument {
    fn from(spec: &WindowSpec) -> Self {
        let WindowSpec { timezone, quiet_start, quiet_end, days, applies_to, bypass_event_types } =
            spec.clone();
        Self { timezone, quiet_start, quiet_end, days, applies_to, bypass_event_types }
    }
}

/// The quiet hours that a list asks for. Faults begin with the place in the list, or have no field where the windows are
/// wrong together.
pub(crate) fn compile(windows: &[ScheduleDocument], reading: Reading) -> Result<QuietHours, Invalid> {
    // The number first: a thousand windows are not worth parsing.
    if windows.len() > QuietHours::MAX_WINDOWS {
        let allowed = format!("at most {} windows", QuietHours::MAX_WINDOWS);
        return Err(Invalid::new("", format_args!("{} windows", windows.len()), allowed));
    }
    let parse = |(index, window): (usize, &ScheduleDocument)| {
        let spec = WindowSpec::from(window);
        let parsed = match reading {
            Reading::Written => Window::parse(spec),
            Reading::Stored => Window::restore(spec),
        };
        parsed.map_err(|fault| fault.at(index))
    };
    let windows: Vec<Window> = windows.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    match reading {
        Reading::Written => QuietHours::new(windows),
        Reading::Stored => QuietHours::restore(windows),
    }
}

/// A request gives a single window or a list, not both.
pub(crate) fn both_given() -> Invalid {
    Invalid::new(
        "delivery_schedules",
        "given beside delivery_schedule",
        "one of the two: a single window, or a list of them",
    )
}

/// A fault in a list that was given as a single window: its field as the writer knows it.
#[must_use]
pub(crate) fn as_single(mut fault: Invalid) -> Invalid {
    for prefix in ["delivery_schedules[0]", "delivery_schedules"] {
        if let Some(rest) = fault.field.strip_prefix(prefix) {
            fault.field = format!("delivery_schedule{rest}");
            break;
        }
    }
    fault
}
