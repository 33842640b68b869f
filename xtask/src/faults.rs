//! `cargo xtask faults`: a server under load, broken in every way that we know.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::test::MUST_RUN;
use crate::tools;
use crate::{cargo, run, target};

/// The short form is a test, with the server that the tests use. The long one breaks the server as it is shipped, and beside
/// it one that syncs too little, which has to be caught.
pub(crate) fn run_with(arguments: &[String]) -> Result<()> {
    tools::install_system()?;
    if arguments.iter().any(|argument| argument == "--short" || argument == "--list") {
        return run_short(arguments);
    }
    run(cargo().args(["build", "--locked", "--release", "--package", "tidegate"]))?;
    let mut all = breaker();
    // Only the power cuts need it, and it takes long to build.
    let only = arguments.iter().position(|argument| argument == "--only");
    let names = only.and_then(|place| arguments.get(place + 1));
    if names.is_none_or(|names| names.contains("power-cut")) {
        all.arg("--weak-binary").arg(build_weak()?);
    }
    run(all.args(arguments))
}

/// The short form of all of them, with what the tests have built: `--tests` means the same features of what others wrote.
fn run_short(arguments: &[String]) -> Result<()> {
    run(short()?.args(arguments))
}

/// The same as a test: what cannot run here has failed.
pub(crate) fn run_whole() -> Result<()> {
    run(short()?.arg("--short").env(MUST_RUN, "1"))
}

fn short() -> Result<Command> {
    run(cargo().args(["build", "--workspace", "--locked", "--bins", "--tests"]))?;
    Ok(Command::new(target().join("debug/tidegate-faults")))
}

fn breaker() -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--locked", "--release", "--package", "tidegate-faults", "--"]);
    cargo
}

/// In a folder of its own, so that nobody takes it for the real one.
fn build_weak() -> Result<PathBuf> {
    let folder = target().join("planted-weak-sync");
    let build =
        ["build", "--locked", "--release", "--package", "tidegate", "--features", "planted-weak-sync"];
    run(cargo().args(build).arg("--target-dir").arg(&folder))?;
    Ok(folder.join("release/tidegate"))
}
