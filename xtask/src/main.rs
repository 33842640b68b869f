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
    /// Measure what is promised about speed, and print a table.
    Bench,
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Test => test(),
        Task::Bench => cargo(&["run", "--quiet", "--release", "--package", "tidegate-bench"]),
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
