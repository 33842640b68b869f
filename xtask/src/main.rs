//! `cargo xtask`: what a developer and the CI run.
#![expect(clippy::print_stderr, reason = "a command-line tool tells what it does")]

mod bench;
mod faults;
mod fuzz;
mod planted;
mod test;
mod tools;

use std::path::{Path, PathBuf};
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
    /// Throw bytes at every reader of strangers' bytes, guided by coverage, and check the laws of `fuzz/`.
    Fuzz(fuzz::Args),
    /// Plant bugs, one at a time, and show that a test catches each.
    Planted(planted::Args),
    /// Break a server in every way that we know, and report what came of it: see faults/README.md.
    Faults {
        /// Such as `--minutes 60`, `--seed 7`, `--only kill,power-cut`, `--short`, `--list`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Test => test::run_all(),
        Task::Bench { arguments } => bench::run_with(&arguments),
        Task::Fuzz(args) => fuzz::run_with(&args),
        Task::Planted(args) => planted::run_with(&args),
        Task::Faults { arguments } => faults::run_with(&arguments),
    }
}

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Where cargo builds; what tests need beside the toolchain is kept there too, so that `cargo clean` removes it.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// The cargo that runs this task, in the folder of the workspace.
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a command in sight of the user, and fails if it does.
fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("> {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// The command as one would type it, without its environment.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
