//! Scenarios that people write: a TOML file with destinations, traffic and faults, and what is expected of them.
//!
//! [`ScenarioFile::load`] reads and checks a file, [`ScenarioFile::run`] simulates it. Policies have the names and
//! shapes of the API and are checked by the same rules. All problems of a file are reported at once ([`Problems`]). The
//! format is described in `docs/scenario-files.md`.

mod behaviour;
mod expect;
mod fields;
mod figures;
mod past;
mod policy;
mod problems;
mod recorded;
mod run;
mod tally;
mod traffic;
mod units;

use std::io;
use std::path::Path;

use tidegate_core::invalid::Invalid;
use tidegate_core::time::{Millis, Timestamp};

use crate::run::{Commit, Destination, Faults};
use crate::traffic::Source;
use crate::world::Outages;
use expect::Expectations;
use fields::{Document, Fields, INSTANT_RULE};
pub use figures::{Ends, Figures};
pub use past::Past;
pub use problems::{Fault, Problem, Problems};
use recorded::Recordings;
pub use run::Run;
use traffic::Around;

/// The largest file that is read: a scenario is written by hand.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The largest recording that is read.
const MAX_RECORDING_BYTES: u64 = 256 * 1024 * 1024;
/// Destinations of a file at most, copies counted.
const MAX_DESTINATIONS: usize = 5_000;
/// Troubles of one destination at most: they are drawn before the run, and looked through one after the other.
const MAX_TROUBLES_EACH: f64 = 10_000.0;
/// Troubles of a file at most: about 50 MB.
const MAX_TROUBLES: f64 = 1_000_000.0;
/// The longest traffic.
const MAX_LENGTH: Millis = Millis::days(366);
/// How long what is left at the end of the traffic is given: longer than the maximum age of a delivery.
const USUAL_DRAIN: Millis = Millis::days(8);
/// How long a commit takes where processes crash: else there would be nothing to lose.
const COMMIT_WITH_CRASHES: Millis = Millis::new(2);
/// Requests that a node makes at a time where the file does not say.
const USUAL_SLOTS: u32 = 2_000;

/// A scenario that somebody wrote, checked.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    name: String,
    about: Option<String>,
    start: Timestamp,
    length: Millis,
    drain: Millis,
    slots: u32,
    commit: Commit,
    accounts: Vec<String>,
    destinations: Vec<Planned>,
    sources: Vec<Source>,
    faults: Faults,
    expect: Expectations,
}

/// A destination with the troubles that chance is to add.
#[derive(Clone, Debug)]
struct Planned {
    destination: Destination,
    outages: Option<Outages>,
}

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It could be read, but not used.
    #[error(transparent)]
    Refused(#[from] Problems),
}

impl ScenarioFile {
    /// Reads a file, and the recordings it names, whose paths are relative to it.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = read(path, MAX_BYTES)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        let recordings = |relative: &str| read(&folder.join(relative), MAX_RECORDING_BYTES);
        Ok(Self::parse(&text, &name, &recordings)?)
    }

    /// Checks the text of a file. `name` is what the scenario is called unless it says; `recordings` gives the text of
    /// the file at a path.
    pub fn parse(
        text: &str,
        name: &str,
        recordings: &dyn Fn(&str) -> io::Result<String>,
    ) -> Result<Self, Problems> {
        Document::read(text, |fields| scenario(fields, name, &Recordings(recordings)))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn scenario(fields: &mut Fields<'_>, name: &str, recordings: &Recordings<'_>) -> Option<ScenarioFile> {
    let title = fields.title("name", 80);
    let about = fields.title("about", 500);
    fields.require("start", INSTANT_RULE);
    fields.require("length", "how long its traffic lasts, such as \"2 days\"");
    let start = fields.instant("start");
    let length = fields.length("length", Millis::seconds(1), MAX_LENGTH);
    let drain = fields.length("drain", Millis::ZERO, MAX_LENGTH).unwrap_or(USUAL_DRAIN);
    let slots = fields.whole_u32("slots", 1, 100_000).unwrap_or(USUAL_SLOTS);
    let commit = fields.length("commit", Millis::ZERO, Millis::seconds(10));
    let faults = fields.table("faults", faults).unwrap_or_default();
    // Where the frame is missing, the rest is checked in one that will do.
    let frame_start = start.unwrap_or(Timestamp::from_millis(0));
    let frame_end = start.zip(length).map_or(Timestamp::MAX, |(start, length)| start + length);
    check_end(fields, start, length.unwrap_or_default() + drain);
    let (accounts, names, destinations) = destinations(fields, frame_start, frame_end, length);
    let bounded = start.is_some() && length.is_some();
    let around = Around { start: frame_start, end: frame_end, bounded, names: &names, recordings };
    let sources = sources(fields, &around);
    let expect = fields.table("expect", |fields| Some(expect::read(fields, frame_start))).unwrap_or_default();
    Some(ScenarioFile {
        name: title.unwrap_or_else(|| name.to_owned()),
        about,
        start: start?,
        length: length?,
        drain,
        slots,
        commit: commit_of(commit, &faults),
        accounts,
        destinations,
        sources,
        faults,
        expect,
    })
}

/// Clocks end with the year 9999, and the run must be over by then.
fn check_end(fields: &Fields<'_>, start: Option<Timestamp>, lasts: Millis) {
    let latest = Timestamp::MAX - lasts;
    if let Some(start) = start
        && start > latest
    {
        let allowed =
            format!("{latest} at the latest, so that `length` and `drain` end by {}", Timestamp::MAX);
        fields.refuse(Invalid::new("start", start, allowed));
    }
}

fn commit_of(takes: Option<Millis>, faults: &Faults) -> Commit {
    match takes {
        Some(takes) if takes > Millis::ZERO => Commit::Grouped(takes),
        None if faults.crash_every.is_some() => Commit::Grouped(COMMIT_WITH_CRASHES),
        _ => Commit::Instant,
    }
}

fn faults(fields: &mut Fields<'_>) -> Option<Faults> {
    let crash_every = fields.length("crash_every", Millis::seconds(30), MAX_LENGTH);
    let lost_wakes = fields.number("lost_wakes", 0.0, 0.9).unwrap_or(0.0);
    let clock_steps = fields.table("clock_steps", |fields| {
        fields.require("every", "the mean time between two steps");
        fields.require("up_to", "the largest step, forwards or backwards");
        let every = fields.length("every", Millis::seconds(1), MAX_LENGTH);
        let up_to = fields.length("up_to", Millis::new(1), Millis::days(1));
        Some((every?, up_to?))
    });
    Some(Faults { crash_every, lost_wakes, clock_steps, ..Faults::default() })
}

/// Accounts by number, names with the destinations that they stand for, and these.
type Places = (Vec<String>, Vec<(String, Vec<usize>)>, Vec<Planned>);

fn destinations(fields: &mut Fields<'_>, start: Timestamp, end: Timestamp, length: Option<Millis>) -> Places {
    fields.require("destination", "at least one [[destination]]");
    let (mut accounts, mut names, mut all): Places = Default::default();
    let mut troubles = 0.0;
    fields.tables("destination", |fields| {
        let (name, copies, planned) = destination(fields, start, end, &mut accounts);
        let name = name?;
        if names.iter().any(|(other, _)| *other == name) {
            fields.refuse(Invalid::new(
                "name",
                format_args!("\"{name}\""),
                "a name that no other destination has",
            ));
            return None;
        }
        if all.len() + copies > MAX_DESTINATIONS {
            let allowed = format!("so many that the file has at most {MAX_DESTINATIONS}");
            fields.refuse(Invalid::new("count", copies, allowed));
            return None;
        }
        check_troubles(fields, &planned, copies, length.unwrap_or_default(), &mut troubles)?;
        let first = all.len();
        for copy in 1..=copies {
            let mut planned = planned.clone();
            planned.destination.name = if copies == 1 { name.clone() } else { format!("{name}-{copy}") };
            all.push(planned);
        }
        names.push((name, (first..all.len()).collect()));
        Some(())
    });
    (accounts, names, all)
}

/// All troubles are known before the run, so there cannot be any number of them.
fn check_troubles(
    fields: &Fields<'_>,
    planned: &Planned,
    copies: usize,
    length: Millis,
    in_all: &mut f64,
) -> Option<()> {
    let each = behaviour::expected(&planned.destination.model.troubles, planned.outages, length);
    *in_all += each * copies as f64;
    let (count, allowed) = if each > MAX_TROUBLES_EACH {
        (each, format!("at most {MAX_TROUBLES_EACH} for a destination"))
    } else if *in_all > MAX_TROUBLES {
        (*in_all, format!("at most {MAX_TROUBLES} in all, over all destinations"))
    } else {
        return Some(());
    };
    let field = if planned.outages.is_some() { "outages" } else { "trouble" };
    fields.refuse(Invalid::new(field, format_args!("about {count:.0} troubles"), allowed));
    None
}

fn destination(
    fields: &mut Fields<'_>,
    start: Timestamp,
    end: Timestamp,
    accounts: &mut Vec<String>,
) -> (Option<String>, usize, Planned) {
    fields.require("name", "a name that [[traffic]] can go to");
    let name = fields.title("name", 80);
    let account = fields.title("account", 80).unwrap_or_else(|| "main".to_owned());
    let copies = fields.whole("count", 1, 5_000).and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    let policy = policy::policy(fields);
    let mut model = fields.table("behaviour", behaviour::model).unwrap_or_else(behaviour::usual);
    let troubles = fields.tables("trouble", |fields| behaviour::trouble(fields, start, end));
    model.troubles = behaviour::in_order(fields, troubles.into_iter().flatten().collect());
    let outages = fields.table("outages", behaviour::outages);
    let number = accounts.iter().position(|known| *known == account).unwrap_or_else(|| {
        accounts.push(account);
        accounts.len() - 1
    });
    let account = u32::try_from(number).unwrap_or(u32::MAX);
    let destination = Destination { name: String::new(), account, policy, model };
    (name, copies, Planned { destination, outages })
}

fn sources(fields: &mut Fields<'_>, around: &Around<'_>) -> Vec<Source> {
    fields.require("traffic", "at least one [[traffic]]");
    let found = fields.tables("traffic", |fields| traffic::traffic(fields, around));
    let events = found.iter().map(|(_, events)| events).sum();
    traffic::check_events(fields, "traffic", events);
    found.into_iter().flat_map(|(sources, _)| sources).collect()
}

/// The text of a file that is not larger than it may be.
fn read(path: &Path, most: u64) -> io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > most {
        let why = format!("it has {size} bytes, more than {most}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    std::fs::read_to_string(path)
}
