//! `cargo xtask`: what a developer and the CI run.
#![expect(clippy::print_stderr, reason = "a command-line tool tells what it does")]

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

/// Tasks of this repository.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test, after installing what the tests need on a Debian machine.
    Test,
    /// Measure what is promised about speed, and print a table. What follows `--` goes to the benchmark.
    Bench {
        /// Such as `--only serve,isolation`.
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Test => test(),
        Task::Bench { arguments } => bench(&arguments),
    }
}

/// Linking needs a C compiler; nothing else is needed beside the toolchain that `rust-toolchain.toml` names.
fn test() -> Result<()> {
    if !Path::new("/usr/bin/cc").exists() && Path::new("/usr/bin/apt-get").exists() {
        run(Command::new("apt-get").args([
            "install",
            "--yes",
            "--no-install-recommends",
            "gcc",
            "libc6-dev",
        ]))?;
    }
    cargo(&["test", "--workspace", "--locked"])
}

/// The server is measured as it is shipped, so it is built first.
fn bench(arguments: &[String]) -> Result<()> {
    cargo(&["build", "--release", "--package", "tidegate"])?;
    let run = ["run", "--quiet", "--release", "--package", "tidegate-bench", "--"];
    cargo(&run.into_iter().chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo).args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("> {}", format!("{command:?}").replace('"', ""));
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
