//! `tidegate-checker DIR`: reads the histories of a run and says which promises it kept.
//!
//! Exit codes: 0 all that was judged holds, 1 something is violated, 2 the histories cannot be read.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tidegate_checker::{Run, Verdict, invariant, table};

/// Judges the histories of a run against what Tidegate promises.
#[derive(Debug, Parser)]
#[command(name = "tidegate-checker", version)]
struct Args {
    /// The directory with world.json, producer.jsonl, receiver.jsonl, faults.jsonl, api.jsonl and resources.jsonl.
    directory: PathBuf,

    /// Judge only these, such as I3,I5.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,

    /// Print the verdicts as JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match judge(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all holds.
fn judge(args: &Args) -> anyhow::Result<bool> {
    for name in &args.only {
        let known = invariant::ALL.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        anyhow::ensure!(known, "there is no promise {name}; there are {}", names());
    }
    let run = Run::load(&args.directory)?;
    let asked =
        |name: &str| args.only.is_empty() || args.only.iter().any(|other| other.eq_ignore_ascii_case(name));
    let judges = invariant::ALL.iter().filter(|(name, _)| asked(name));
    let verdicts: Vec<Verdict> = judges.map(|(_, judge)| judge(&run)).collect();
    let text =
        if args.json { serde_json::to_string_pretty(&verdicts)? + "\n" } else { table::render(&verdicts) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(verdicts.iter().all(Verdict::holds))
}

fn names() -> String {
    invariant::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
