//! `cargo xtask faults`: the real server on real files and sockets, broken in every way that we know, and judged by what its
//! producers and receivers saw. See `faults/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a report is all it makes")]

mod changer;
mod client;
mod clock;
mod database;
mod dice;
mod dump;
mod history;
mod judge;
mod ledger;
mod mounts;
mod poller;
mod producer;
mod receiver;
mod report;
mod rig;
mod run;
mod sampler;
mod scenario;
mod server;
mod tracer;
mod transit;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use clock::{now, secs, wall_ms};
use report::Row;
use rig::{Form, Outcome, Place, Rig, Wanted};
use scenario::Scenario;

/// Breaks a server in every way that we know, and reports what came of it.
#[derive(Parser)]
struct Cli {
    /// A few seconds of each scenario, as a test.
    #[arg(long)]
    short: bool,
    /// How long the long form goes on, all scenarios together.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Where chance begins. By default 1 in the short form, another one each time in the long one.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these scenarios.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Name the scenarios, and run none.
    #[arg(long)]
    list: bool,
    /// Long form of `kill`: so many kills, however long that takes.
    #[arg(long)]
    kills: Option<u64>,
    /// Long form of `kill` and `calm`: so many events, however long that takes.
    #[arg(long)]
    events: Option<u64>,
    /// Long form of `power-cut`: so many cuts, however long that takes.
    #[arg(long)]
    cuts: Option<u64>,
    /// The server. By default the release binary of this tree, in the short form the one for tests.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// A server that was built with `planted-weak-sync`: `power-cut` shows that it is caught.
    #[arg(long)]
    weak_binary: Option<PathBuf>,
    /// Where everything is kept. By default below `target`.
    #[arg(long)]
    directory: Option<PathBuf>,
}

fn main() -> ExitCode {
    run(&Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    let chosen = scenario::chosen(&cli.only)?;
    if cli.list {
        for scenario in chosen {
            println!("{:16} {}", scenario.name, scenario.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut stop, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // What a scenario has started ends when it is dropped: processes, mounts, loop devices.
        tokio::select! {
            ended = all(cli, &chosen) => ended,
            _ = stop.recv() => bail!("stopped by a signal"),
            _ = interrupt.recv() => bail!("stopped by a signal"),
        }
    })
}

async fn all(cli: &Cli, chosen: &[&'static Scenario]) -> Result<ExitCode> {
    let form = if cli.short { Form::Short } else { Form::Long };
    let seed = cli.seed.unwrap_or_else(|| if cli.short { 1 } else { wall_ms().unsigned_abs() % 1_000_000 });
    let place = place(cli, form)?;
    eprintln!("seed {seed}, server {}", place.binary.display());
    let shares: u64 = chosen.iter().map(|scenario| scenario.share).sum();
    let mut rows = Vec::new();
    for scenario in chosen {
        let time = secs(60 * cli.minutes) * u32::try_from(scenario.share)? / u32::try_from(shares.max(1))?;
        rows.push(one(scenario, &place, seed, time).await);
    }
    println!("{}", report::table(&rows));
    for row in rows.iter().filter(|row| row.failed()) {
        println!("{}\n  again: {}\n", row.story(), row.command(form, &place));
    }
    let failed = rows.iter().filter(|row| row.failed()).count();
    println!("{}", report::summary(&rows));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one scenario. What it leaves is kept if it failed.
async fn one(scenario: &'static Scenario, place: &Place, seed: u64, time: Duration) -> Row {
    let began = now();
    let mut rig = Rig::new(place.clone(), scenario.name, seed, began + time);
    let _ = fs::remove_dir_all(&rig.home);
    let ended = (scenario.run)(&mut rig).await.and_then(|outcome| ran_whole(outcome, rig.left_out()));
    if ended.is_ok() {
        let _ = fs::remove_dir_all(&rig.home);
    }
    let row = Row::new(&rig, ended, began.elapsed(), time);
    eprintln!("{}", row.line());
    row
}

/// Where everything has to run, as in `cargo xtask test`, what cannot has failed: left out it would look like one that passed.
fn ran_whole(outcome: Outcome, left_out: &[String]) -> Result<Outcome> {
    if std::env::var_os("XTASK_MUST_RUN").is_none() {
        return Ok(outcome);
    }
    if let Outcome::Skipped(why) = outcome {
        bail!("it must run, and cannot: {why}");
    }
    ensure!(left_out.is_empty(), "all of it must run, and this cannot: {}", left_out.join(", "));
    Ok(outcome)
}

fn place(cli: &Cli, form: Form) -> Result<Place> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("it lies in the workspace")?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let built = if form == Form::Short { "debug/tidegate" } else { "release/tidegate" };
    let binary = cli.binary.clone().unwrap_or_else(|| target.join(built));
    let binary =
        binary.canonicalize().with_context(|| format!("there is no server at {}", binary.display()))?;
    let directory = cli.directory.clone().unwrap_or_else(|| target.join("faults"));
    fs::create_dir_all(&directory)?;
    let weak_binary = cli.weak_binary.as_ref().map(|path| path.canonicalize()).transpose()?;
    let wanted = Wanted { kills: cli.kills, events: cli.events, cuts: cli.cuts };
    Ok(Place { directory: directory.canonicalize()?, binary, weak_binary, form, wanted })
}

impl Row {
    /// What came of a scenario that has ended.
    fn new(rig: &Rig, ended: Result<Outcome>, took: Duration, time: Duration) -> Self {
        let notes = rig.notes().to_vec();
        Self {
            name: rig.name,
            seed: rig.seed,
            figures: rig.figures(),
            judgements: rig.judgements(),
            left_out: rig.left_out().to_vec(),
            notes,
            ended,
            took,
            time,
            home: rig.home.clone(),
        }
    }
}
