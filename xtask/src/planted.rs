//! `cargo xtask planted`: shows that the tests see what they are there to see.
//!
//! `xtask/planted.toml` names bugs: a few characters that break one promise, and the test that must notice. Each is planted
//! in a copy of the tree, alone; then the test must compile, and fail. The test `planted` of this crate, which runs with all others,
//! sees to it that every bug of the table still fits the sources.

mod copy;
mod table;

use std::ffi::OsString;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::copy::Copy;
use self::table::Bug;
use crate::{shown, target};

/// A test that takes longer hangs: nobody would call that noticing. (`timeout` is part of every Debian.)
const LONGEST_SECONDS: &str = "300";

/// Which bugs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those whose name holds this; may be repeated.
    #[arg(long)]
    only: Vec<String>,
    /// Name them, and plant nothing.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run_with(args: &Args) -> Result<()> {
    let wanted = |bug: &Bug| args.only.is_empty() || args.only.iter().any(|part| bug.name.contains(part));
    let bugs: Vec<Bug> = table::read()?.into_iter().filter(wanted).collect();
    if args.list {
        for Bug { name, breaks, file, test, .. } in &bugs {
            eprintln!("{name}\n    {breaks}\n    in {file}, caught by cargo test {test}");
        }
        return Ok(());
    }
    if bugs.is_empty() {
        bail!("no bug has such a name: cargo xtask planted --list shows them");
    }
    let copy = Copy::make(&target().join("planted/tree"))?;
    check_unharmed(&copy, &bugs)?;
    let mut missed = Vec::new();
    for bug in &bugs {
        let (verdict, took) = plant(&copy, bug)?;
        let seconds = took.as_secs_f32();
        match &verdict {
            Verdict::Caught(tests) => {
                let more = match tests.len() - 1 {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                eprintln!("caught  {:40} {seconds:4.0} s  by {}{more}", bug.name, tests[0]);
            }
            Verdict::Missed(why) => {
                eprintln!("MISSED  {:40} {seconds:4.0} s  {why}", bug.name);
                missed.push(bug.name.as_str());
            }
        }
    }
    eprintln!("{} planted, {} caught", bugs.len(), bugs.len() - missed.len());
    if missed.is_empty() { Ok(()) } else { bail!("not caught: {}", missed.join(", ")) }
}

/// What the test made of a bug.
enum Verdict {
    /// These tests failed.
    Caught(Vec<String>),
    /// None did, for this reason.
    Missed(&'static str),
}

/// A test that fails anyway catches nothing: all of them must pass before anything is planted.
fn check_unharmed(copy: &Copy, bugs: &[Bug]) -> Result<()> {
    let mut tests: Vec<&str> = bugs.iter().map(|bug| bug.test.as_str()).collect();
    tests.sort_unstable();
    tests.dedup();
    for test in tests {
        let built = build(copy, test)?;
        let output = if built.status.success() { run(copy, test)? } else { built };
        if !output.status.success() || passed(&output) == 0 {
            bail!("without any bug, this does not pass: cargo test {test}\n{}", text(&output));
        }
    }
    Ok(())
}

fn plant(copy: &Copy, bug: &Bug) -> Result<(Verdict, Duration)> {
    #[expect(clippy::disallowed_methods, reason = "a tool tells how long it took")]
    let began = Instant::now();
    let _planted = copy.plant(bug)?;
    let verdict = if build(copy, &bug.test)?.status.success() {
        judge(bug, &run(copy, &bug.test)?)
    } else {
        Verdict::Missed("it does not compile: that proves nothing")
    };
    Ok((verdict, began.elapsed()))
}

fn judge(bug: &Bug, output: &Output) -> Verdict {
    const TOOK_TOO_LONG: i32 = 124;
    let text = text(output);
    let failed: Vec<String> = text.lines().filter_map(failed_test).collect();
    let is_said = |words: &String| text.lines().any(|line| line.starts_with(words.as_str()));
    match output.status.code() {
        Some(0) => Verdict::Missed("the test passes"),
        Some(TOOK_TOO_LONG) => Verdict::Missed("the test hangs"),
        _ if failed.is_empty() => Verdict::Missed("the test did not fail, but something did"),
        _ if !bug.says.iter().all(is_said) => Verdict::Missed("the test fails, but for another reason"),
        _ => Verdict::Caught(failed),
    }
}

/// The name in `test NAME ... FAILED`.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix("FAILED")?;
    Some(name.trim_end().trim_end_matches("...").trim_end().to_owned())
}

/// How many tests ran and passed.
fn passed(output: &Output) -> usize {
    text(output).lines().filter(|line| line.starts_with("test ") && line.ends_with("... ok")).count()
}

fn build(copy: &Copy, test: &str) -> Result<Output> {
    let mut cargo = Command::new(cargo());
    cargo.args(["test", "--no-run"]);
    output(copy, cargo, test)
}

fn run(copy: &Copy, test: &str) -> Result<Output> {
    let mut timeout = Command::new("timeout");
    timeout.arg(LONGEST_SECONDS).arg(cargo()).arg("test");
    output(copy, timeout, test)
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// In the copy, with a target directory of its own: what a bug was built into is never run by anybody else. Without
/// optimisation: most of the time goes into compiling.
fn output(copy: &Copy, mut command: Command, test: &str) -> Result<Output> {
    command.arg("--locked").args(test.split(' '));
    command.current_dir(copy.folder()).stdin(Stdio::null());
    command.env("CARGO_TARGET_DIR", target().join("planted/target"));
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.output().with_context(|| format!("cannot start `{}`", shown(&command)))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
