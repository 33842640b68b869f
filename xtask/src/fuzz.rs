//! `cargo xtask fuzz`: looks for bytes that break a law, target by target, guided by the coverage of the code.
//!
//! libFuzzer, built with the compiler that builds everything else: coverage is asked for with flags that stable takes, and
//! no sanitizer is needed where no code is unsafe. What it finds interesting is collected below `target/fuzz/corpus`; with
//! `--keep`, what adds most to `fuzz/corpus` is copied there, and `cargo test` replays it from then on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, root, run, shown, target};

/// Counters for every edge of every function, which libFuzzer reads, and what comparisons compare.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";
/// The longest input: bodies and files that matter are short, and long ones are slow.
const LONGEST: usize = 4_096;
/// One input may take so long: above it, a stranger could keep us busy.
const SLOWEST_SECONDS: u64 = 10;

/// Cases that one `--keep` adds at most: a corpus stays small, and each is run with every test.
const MOST_KEPT: usize = 16;

/// What to fuzz, and for how long.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target; may be repeated.
    #[arg(long)]
    only: Vec<String>,
    /// Keep a few that add the most coverage, in fuzz/corpus.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run_with(args: &Args) -> Result<()> {
    let fuzzer = build()?;
    let mut failed = Vec::new();
    for name in targets()? {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        if !fuzz(&fuzzer, &name, args.seconds)? {
            failed.push(name.clone());
        }
        if args.keep {
            keep(&fuzzer, &name)?;
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("a law does not hold: {}", failed.join(", ")) }
}

/// Builds in a folder of its own: nothing else is compiled with these flags.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let folder = target().join("fuzz/build");
    let mut build = cargo();
    build.args(["build", "--locked", "--package", "tidegate-fuzz", "--features", "libfuzzer"]);
    build.args(["--profile", "fuzz", "--target", &host, "--target-dir"]).arg(&folder);
    build.env("RUSTFLAGS", COVERAGE);
    run(&mut build).context("the fuzzer needs a C++ compiler (Debian: g++)")?;
    Ok(folder.join(host).join("fuzz/tidegate-fuzz"))
}

/// Flags for the host alone do not reach build scripts and macros, which have no counters to read.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it compiles for")
}

/// The targets, by their corpora: a test sees to it that each has one.
fn targets() -> Result<Vec<String>> {
    let names = files(&root().join("fuzz/corpus"))?;
    let mut names: Vec<String> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Runs one target and says in a line how it went.
fn fuzz(fuzzer: &Path, name: &str, seconds: u64) -> Result<bool> {
    let (found, findings) = (found(name), target().join("fuzz/findings"));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&findings)?;
    let log = target().join(format!("fuzz/{name}.log"));
    let mut fuzz = command(fuzzer, name, &log)?;
    fuzz.arg(&found).arg(root().join("fuzz/corpus").join(name));
    fuzz.arg(format!("-max_total_time={seconds}"));
    fuzz.arg(format!("-artifact_prefix={}/{name}-", findings.display()));
    fuzz.args(["-print_final_stats=1", "-use_value_profile=1"]);
    let status = fuzz.status().with_context(|| format!("cannot start `{}`", shown(&fuzz)))?;
    let told = fs::read_to_string(&log).unwrap_or_default();
    let stat =
        |key: &str| told.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("?").trim().to_owned();
    let executed = stat("stat::number_of_executed_units:");
    let (each, new) = (stat("stat::average_exec_per_sec:"), stat("stat::new_units_added:"));
    let verdict = if status.success() { "every law holds" } else { "A LAW DOES NOT HOLD" };
    eprintln!("{name:14} {executed:>9} inputs, {each:>6} a second, {new:>5} new: {verdict}");
    if !status.success() {
        let case = told.lines().rev().find_map(|line| line.split_once("Test unit written to "));
        eprintln!("  see {}", log.display());
        if let Some((_, case)) = case {
            eprintln!("  repeat: cp {case} fuzz/corpus/{name}/ && cargo test -p tidegate-fuzz");
        }
    }
    Ok(status.success())
}

/// Adds to the corpus, of what was found, a few that cover more than it does. The fuzzer chooses the one that adds most first, so
/// the first that it wrote are the ones to keep.
fn keep(fuzzer: &Path, name: &str) -> Result<()> {
    let (corpus, chosen) = (root().join("fuzz/corpus").join(name), target().join("fuzz/chosen").join(name));
    drop(fs::remove_dir_all(&chosen));
    fs::create_dir_all(&chosen)?;
    for case in files(&corpus)? {
        fs::copy(corpus.join(&case), chosen.join(&case))?;
    }
    let log = target().join(format!("fuzz/{name}-keep.log"));
    let mut merge = command(fuzzer, name, &log)?;
    merge.arg("-set_cover_merge=1").arg(&chosen).arg(found(name));
    let status = merge.status().with_context(|| format!("cannot start `{}`", shown(&merge)))?;
    if !status.success() {
        bail!("`{}` failed: see {}", shown(&merge), log.display());
    }
    let mut new = Vec::new();
    for case in files(&chosen)?.into_iter().filter(|case| !corpus.join(case).exists()) {
        new.push((fs::metadata(chosen.join(&case))?.modified()?, case));
    }
    new.sort();
    for (_, case) in new.iter().take(MOST_KEPT) {
        fs::copy(chosen.join(case), corpus.join(case))?;
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?)
}

fn command(fuzzer: &Path, name: &str, log: &Path) -> Result<Command> {
    let mut command = Command::new(fuzzer);
    command.env("FUZZ_TARGET", name).current_dir(target().join("fuzz"));
    command.arg(format!("-max_len={LONGEST}")).arg(format!("-timeout={SLOWEST_SECONDS}"));
    command.stderr(File::create(log).with_context(|| format!("cannot write {}", log.display()))?);
    Ok(command)
}

/// Where what was found lies from run to run.
fn found(name: &str) -> PathBuf {
    target().join("fuzz/corpus").join(name)
}
