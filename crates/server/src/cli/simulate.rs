//! `tidegate simulate`: runs a built-in scenario or a file, and shows what it found as a table, as JSON, as a picture.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use tidegate_sim::history::Recorder;
use tidegate_sim::report::Report;
use tidegate_sim::run::Setup;
use tidegate_sim::scenario::file::{LoadError, ScenarioFile};
use tidegate_sim::scenario::{self, Scenario, restart};
use tidegate_sim::{svg, table};

use super::progress::ProgressLine;
use super::{Ended, say};

/// The options of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in .toml. Without it, the built-in ones are listed.
    #[arg(value_name = "SCENARIO|FILE.toml")]
    scenario: Option<String>,

    /// All chance comes from this number: the same seed gives the same result.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print the report as JSON, and nothing else.
    #[arg(long)]
    json: bool,

    /// Draw what happened over time into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write what happened into this directory, for `tidegate-checker` to judge: of `restart`, or of a file.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,

    /// List the built-in scenarios.
    #[arg(long, conflicts_with = "scenario")]
    list: bool,
}

/// What a run leaves: the report, and the same as text and as JSON with all that belongs to it.
struct Results {
    report: Report,
    text: String,
    json: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Ended> {
    let Some(name) = args.scenario.as_deref().filter(|_| !args.list) else {
        return say(&list()).map(|()| Ended::Well);
    };
    // Everything that can be wrong with the input is found before the first line of output.
    let subject = Subject::find(name)?;
    if let Some(path) = &args.svg {
        check_writable(path)?;
    }
    if !args.json {
        say(&format!("seed {}\n\n", args.seed))?;
    }
    let results = subject.run(args.seed, args.history.as_deref())?;
    say(if args.json { &results.json } else { &results.text })?;
    if let Some(path) = &args.svg {
        draw(&results.report, path)?;
        if !args.json {
            say(&format!("\nThe picture is in {}.\n", path.display()))?;
        }
    }
    if let Some(path) = args.history.as_ref().filter(|_| !args.json) {
        say(&format!("\nThe histories are in {0}: tidegate-checker {0}\n", path.display()))?;
    }
    if !args.json {
        say(&format!("\n{}\nseed {}\n", table::verdict(&results.report), args.seed))?;
    }
    Ok(if results.report.holds() { Ended::Well } else { Ended::DoesNotHold })
}

/// What is to be simulated.
enum Subject {
    BuiltIn(Scenario),
    File(Box<ScenarioFile>),
}

impl Subject {
    fn find(name: &str) -> anyhow::Result<Self> {
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            return Ok(Self::File(Box::new(load(path)?)));
        }
        let known = scenario::ALL.iter().find(|scenario| scenario.name == name);
        known.copied().map(Self::BuiltIn).ok_or_else(|| unknown(name))
    }

    fn run(&self, seed: u64, history: Option<&Path>) -> anyhow::Result<Results> {
        let mut progress = ProgressLine::new();
        let mut tell = |done: f64, doing: &str| progress.show(done, doing);
        match self {
            Self::BuiltIn(scenario) => {
                let report = match history {
                    None => (scenario.run)(seed, &mut tell),
                    Some(path) if scenario.name == "restart" => {
                        let recorder = record(path, &restart::setup(seed))?;
                        let (report, recorder) = restart::run_watched(seed, recorder, &mut tell);
                        recorder.finish().with_context(|| unrecordable(path))?;
                        report
                    }
                    Some(_) => return Err(anyhow!("only `restart` and scenario files leave histories")),
                };
                Ok(Results { text: table::report(&report), json: json(&report)?, report })
            }
            Self::File(file) => {
                let run = match history {
                    None => file.run(seed, &mut tell),
                    Some(path) => {
                        let recorder = record(path, &file.setup(seed))?;
                        let (run, recorder) = file.run_watched(seed, recorder, &mut tell);
                        recorder.finish().with_context(|| unrecordable(path))?;
                        run
                    }
                };
                let text =
                    format!("{}\n{}", table::report(&run.report), table::destinations(&run.destinations));
                Ok(Results { text, json: json(&run)?, report: run.report })
            }
        }
    }
}

fn load(path: &Path) -> anyhow::Result<ScenarioFile> {
    ScenarioFile::load(path).map_err(|error| match error {
        LoadError::Unreadable(error) => anyhow!("{}: cannot be read: {error}", path.display()),
        LoadError::Refused(problems) => {
            let count = problems.iter().len();
            let noun = if count == 1 { "problem" } else { "problems" };
            anyhow!(
                "{}: {count} {noun}\n{}\nThe format is described in docs/scenario-files.md.",
                path.display(),
                problems.to_string().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
            )
        }
    })
}

fn unknown(name: &str) -> anyhow::Error {
    let names: Vec<&str> = scenario::ALL.iter().map(|scenario| scenario.name).collect();
    anyhow!(
        "there is no scenario \"{}\"; the built-in ones are: {}. The name of a file must end in .toml.",
        name.escape_debug(),
        names.join(", ")
    )
}

fn list() -> String {
    let entries: Vec<(&str, &str)> =
        scenario::ALL.iter().map(|scenario| (scenario.name, scenario.about)).collect();
    format!(
        "Built-in scenarios:\n\n{}\nRun one with `tidegate simulate <name>`, \
         or write your own: docs/scenario-files.md has the format.\n",
        table::list(&entries)
    )
}

fn json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value).context("the report cannot be written as JSON")?;
    text.push('\n');
    Ok(text)
}

/// A run may take minutes: whether its picture can be kept is found out before. A picture that is there stays until then.
fn check_writable(path: &Path) -> anyhow::Result<()> {
    let opened = File::options().write(true).create(true).truncate(false).open(path);
    opened.map(|_| ()).with_context(|| unwritable(path))
}

fn draw(report: &Report, path: &Path) -> anyhow::Result<()> {
    std::fs::write(path, svg::render(report)).with_context(|| unwritable(path))
}

fn record(path: &Path, setup: &Setup) -> anyhow::Result<Recorder> {
    Recorder::create(path, setup).with_context(|| unrecordable(path))
}

fn unrecordable(path: &Path) -> String {
    format!("the histories cannot be written to {}", path.display())
}

fn unwritable(path: &Path) -> String {
    format!("the picture cannot be written to {}", path.display())
}
