//! `cargo xtask faults`: a server under load, broken in every way that we know.

use std::path::PathBuf;

use anyhow::Result;

use crate::tools;
use crate::{cargo, run, target};

/// The short form is a test, with the server that the tests use. The long one breaks the server as it is shipped, and beside
/// it one that syncs too little, which has to be caught.
pub(crate) fn run_with(arguments: &[String]) -> Result<()> {
    tools::install_system()?;
    if arguments.iter().any(|argument| argument == "--short" || argument == "--list") {
        run(cargo().args(["build", "--locked", "--package", "tidegate"]))?;
        return run(breaker(false).args(arguments));
    }
    run(cargo().args(["build", "--locked", "--release", "--package", "tidegate"]))?;
    let mut all = breaker(true);
    // Only the power cuts need it, and it takes long to build.
    let only = arguments.iter().position(|argument| argument == "--only");
    let names = only.and_then(|place| arguments.get(place + 1));
    if names.is_none_or(|names| names.contains("power-cut")) {
        all.arg("--weak-binary").arg(build_weak()?);
    }
    run(all.args(arguments))
}

/// The short form of all of them.
pub(crate) fn run_short() -> Result<()> {
    run_with(&["--short".to_owned()])
}

fn breaker(release: bool) -> std::process::Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--locked", "--package", "tidegate-faults"]);
    if release {
        cargo.arg("--release");
    }
    cargo.arg("--");
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
