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
    /// The recording at `path`. Faults have no field: the caller names it.
    pub(super) fn read(&self, path: &str) -> Result<Recording, Vec<Invalid>> {
        let text = (self.0)(path).map_err(|error| {
            let value = format_args!("\"{path}\", which cannot be read: {error}");
            vec![Invalid::new("", value, "a CSV file, its path relative to this file")]
        })?;
        Recording::parse(path, &text)
    }
}

/// Times in order, for each event type.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) streams: BTreeMap<Option<EventType>, Vec<Timestamp>>,
    /// The earliest and the latest time, with their lines.
    span: Option<((Timestamp, usize), (Timestamp, usize))>,
}

impl Recording {
    fn parse(path: &str, text: &str) -> Result<Self, Vec<Invalid>> {
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
        let mut recording = Self { streams: BTreeMap::new(), span: None };
        let mut faults = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            if number > MAX_LINES {
                faults.push(fault(number, line, &format!("at most {MAX_LINES} lines")));
                break;
            }
            match event(line, typed) {
                Ok((at, event_type)) => recording.add(at, event_type, number),
                Err(allowed) => faults.push(fault(number, line, &allowed)),
            }
        }
        if faults.is_empty() && recording.streams.is_empty() {
            faults.push(Invalid::new(
                "",
                format_args!("\"{path}\", which has no events"),
                "at least one line",
            ));
        }
        if faults.len() > MAX_NAMED {
            let more = format!("{path}, with {} more bad lines", faults.len() - MAX_NAMED);
            faults.truncate(MAX_NAMED);
            faults.push(Invalid::new("", more, "lines as described in docs/scenario-files.md"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        recording.streams.values_mut().for_each(|times| times.sort_unstable());
        Ok(recording)
    }

    fn add(&mut self, at: Timestamp, event_type: Option<EventType>, line: usize) {
        let (first, last) = self.span.get_or_insert(((at, line), (at, line)));
        *first = (*first).min((at, line));
        if at > last.0 {
            *last = (at, line);
        }
        self.streams.entry(event_type).or_default().push(at);
    }

    /// Everything must lie in the run: what lies outside would silently be missing.
    pub(super) fn check_within(&self, path: &str, start: Timestamp, end: Timestamp) -> Result<(), Invalid> {
        let Some((first, last)) = self.span else { return Ok(()) };
        let outside = [first, last].into_iter().find(|(at, _)| *at < start || *at > end);
        match outside {
            None => Ok(()),
            Some((at, line)) => Err(Invalid::new(
                "",
                format_args!("{path}, line {line}: {at}"),
                format!("times within the run: {start} to {end}"),
            )),
        }
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
