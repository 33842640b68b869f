//! `cargo xtask bench`: what the project promises about speed, measured on this machine with the release binary over real
//! sockets, with limits from the same run beside it. It prints a table and draws a picture; it never fails for being slow.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table is all it makes")]

mod api;
mod child;
mod database;
mod fill;
mod gates;
mod load;
mod parts;
mod payload;
mod picture;
mod relay;
mod requests;
mod row;
mod service;
mod simulation;
mod sink;
mod stack;
mod stopwatch;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use parts::{Bench, Part};
use row::Row;
use service::Place;
use stack::Stack;

/// Measures what the project promises, and prints a table.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    helper: Option<Helper>,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Deliveries that wait in the part `scale`.
    #[arg(long, default_value_t = 5_000_000)]
    scale: u64,
    /// Deliveries that wait in the part `backlog`.
    #[arg(long, default_value_t = 10_000_000)]
    backlog: u64,
    /// Seconds of publishing in each run of the part `serve`.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Pairs of runs in `isolation` and `scale`.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Where the servers keep their data: must be on a real disk. By default below `target`.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// The server. By default the release binary of this tree.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// What client, relay and sink are made of.
    #[arg(long, value_enum, default_value = "hyper")]
    stack: Stack,
    /// One more argument for each server.
    #[arg(long, allow_hyphen_values = true)]
    server_argument: Vec<String>,
    /// Where the picture goes.
    #[arg(long)]
    picture: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Helper {
    /// The receiver of all measurements.
    #[command(hide = true)]
    Sink,
    /// A relay without storage.
    #[command(hide = true)]
    Relay {
        /// Where it sends to.
        sink: String,
    },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match cli.helper {
        Some(Helper::Sink) => {
            child::end_with_parent();
            runtime.block_on(sink::run(cli.stack))
        }
        Some(Helper::Relay { sink }) => {
            child::end_with_parent();
            runtime.block_on(relay::run(cli.stack, sink))
        }
        None => runtime.block_on(measure(cli)),
    }
}

async fn measure(cli: Cli) -> Result<()> {
    child::raise_file_limit();
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the benchmarks lie in the workspace")?;
    let place = Place {
        binary: cli.binary.unwrap_or_else(|| root.join("target/release/tidegate")),
        directory: cli.directory.unwrap_or_else(|| root.join("target/bench")),
        extra: cli.server_argument,
        database: None,
    };
    let picture = cli.picture.unwrap_or_else(|| root.join("bench/results.svg"));
    let publish = Duration::from_secs(cli.seconds);
    let (stack, scale, backlog, pairs) = (cli.stack, cli.scale, cli.backlog, cli.pairs.max(1));
    let mut bench = Bench { place, stack, scale, backlog, publish, pairs };
    let mut rows: Vec<Row> = Vec::new();
    for part in Part::in_order(&cli.only) {
        eprintln!("measuring: {}", part.name());
        match part.measure(&mut bench).await {
            Ok(measured) => {
                eprint!("{}", row::table(&measured));
                rows.extend(measured);
            }
            Err(error) => {
                eprintln!("{} could not be measured: {error:#}", part.name());
                rows.push(Row::note(format!("{}: could not be measured", part.name()), f64::NAN, ""));
            }
        }
    }
    print!("{}", row::table(&rows));
    std::fs::write(&picture, picture::render(&rows))
        .with_context(|| format!("cannot write {}", picture.display()))?;
    eprintln!("drawn: {}", picture.display());
    Ok(())
}
