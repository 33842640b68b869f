//! The recorded past: a CSV file with the time of each event, and its type.
//!
//! ```csv
//! time,event_type
//! 2026-03-01T08:00:00.120Z,order.created
//! 2026-03-01T08:00:01.004Z,order.paid
//! ```
//!
//! The second column may be left out, header and all; the scenario file then says the type. Lines may come in any order.

use std::collections::BTreeMap;
use std::io;

use tidegate_core::invalid::Invalid;
use tidegate_core::pattern::EventType;
use tidegate_core::time::Timestamp;

/// Lines of one file at most: 16 MB of times.
const MAX_LINES: usize = 2_000_000;
/// Bad lines named at most.
const MAX_NAMED: usize = 10;
const TIME_RULE: &str = "a time such as 2026-03-07T18:00:00Z";

/// Where recordings come from: the text of the file at a path.
pub(super) struct Recordings<'a>(pub(super) &'a dyn Fn(&str) -> io::Result<String>);

impl Recordings<'_> {
    /// The recording at `path`. Everything in it must lie in the run: what lies outside would silently be missing.
    /// Faults have no field: the caller names it.
    pub(super) fn read(
        &self,
        path: &str,
        start: Timestamp,
        end: Timestamp,
    ) -> Result<Recording, Vec<Invalid>> {
        let text = (self.0)(path).map_err(|error| {
            let value = format_args!("\"{path}\", which cannot be read: {error}");
            vec![Invalid::new("", value, "a CSV file, its path relative to this file")]
        })?;
        Recording::parse(path, &text, start, end)
    }
}

/// Times in order, for each event type.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) streams: BTreeMap<Option<EventType>, Vec<Timestamp>>,
}

impl Recording {
    fn parse(path: &str, text: &str, start: Timestamp, end: Timestamp) -> Result<Self, Vec<Invalid>> {
        let fault = |line: usize, what: &str, allowed: &str| {
            Invalid::new("", format_args!("{path}, line {line}: \"{what}\""), allowed)
        };
        let mut lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
        let header = lines.next().map(|(_, header)| header.to_ascii_lowercase()).unwrap_or_default();
        let typed = match columns(&header)[..] {
            ["time", "event_type"] => true,
            ["time"] => false,
            _ => return Err(vec![fault(1, &header, "the header time,event_type or time")]),
        };
        let mut recording = Self { streams: BTreeMap::new() };
        let (mut faults, mut unnamed) = (Vec::new(), 0_usize);
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            if number > MAX_LINES {
                faults.push(fault(number, line, &format!("at most {MAX_LINES} lines")));
                break;
            }
            let allowed = match event(line, typed) {
                Ok((at, _)) if at < start || at > end => format!("times within the run: {start} to {end}"),
                Ok((at, event_type)) => {
                    recording.streams.entry(event_type).or_default().push(at);
                    continue;
                }
                Err(allowed) => allowed,
            };
            // All lines may be bad, and they may be many.
            if faults.len() < MAX_NAMED {
                faults.push(fault(number, line, &allowed));
            } else {
                unnamed += 1;
            }
        }
        if faults.is_empty() && recording.streams.is_empty() {
            faults.push(Invalid::new(
                "",
                format_args!("\"{path}\", which has no events"),
                "at least one line",
            ));
        }
        if unnamed > 0 {
            let more = format!("{path}, with {unnamed} more bad lines");
            faults.push(Invalid::new("", more, "lines as described in docs/scenario-files.md"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        recording.streams.values_mut().for_each(|times| times.sort_unstable());
        Ok(recording)
    }
}

fn event(line: &str, typed: bool) -> Result<(Timestamp, Option<EventType>), String> {
    let columns = columns(line);
    let (time, event_type) = match (&columns[..], typed) {
        ([time], false) => (*time, None),
        ([time, event_type], true) => (*time, Some(*event_type)),
        (_, false) => return Err("one column: time".to_owned()),
        (_, true) => return Err("two columns: time,event_type".to_owned()),
    };
    let at = Timestamp::parse(time).ok_or(TIME_RULE)?;
    let event_type = event_type.map(EventType::parse).transpose();
    Ok((at, event_type.map_err(|fault| format!("an event type: {}", fault.allowed))?))
}

/// The columns of a line. Neither times nor types contain commas, so quotes are only taken off.
fn columns(line: &str) -> Vec<&str> {
    line.split(',').map(unquoted).collect()
}

fn unquoted(column: &str) -> &str {
    let column = column.trim();
    column.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(column)
}
