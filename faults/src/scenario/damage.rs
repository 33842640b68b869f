//! Files that were cut or changed while nobody ran on them: the server refuses to start and says why, or it starts with what
//! is there. It never starts with an empty store instead, and never touches what it refuses.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;

use super::Scenario;
use crate::clock::secs;
use crate::database::{FILE, LOG};
use crate::dice::Dice;
use crate::history::History;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting, copy_directory};
use crate::server::{Launch, Server};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "damage",
    about: "cut and bit-flipped database and log: refused with a word, or started with what is there",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

/// What the server says then.
const BROKEN: &str = "the store is broken";

/// What it says when it does not start: of the files, or of what it read in them.
const REFUSALS: &[&str] = &["cannot use the data directory", "in the store cannot be used", BROKEN];

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// Its end is cut off.
    Cut,
    /// Nothing is left of it.
    Empty,
    /// It is not there.
    Gone,
    /// A bit of its header.
    FlipHeader,
    /// Some bits anywhere.
    Flip,
}

/// How the server ended whose files are harmed.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Everything is in the file.
    Stopped,
    /// There is a log, and what it has counts.
    Killed,
}

/// Each way to harm each file, and whether it has to be noticed at the start.
const WAYS: &[(End, &str, Harm, bool)] = &[
    (End::Stopped, FILE, Harm::Cut, true),
    (End::Stopped, FILE, Harm::FlipHeader, true),
    (End::Stopped, FILE, Harm::Flip, false),
    // No log is left to tell: the marker does.
    (End::Stopped, FILE, Harm::Empty, true),
    (End::Stopped, FILE, Harm::Gone, true),
    // While there is a log the file may be shorter than it says.
    (End::Killed, FILE, Harm::Cut, false),
    (End::Killed, FILE, Harm::Empty, true),
    (End::Killed, FILE, Harm::Gone, true),
    // The log has that page, too.
    (End::Killed, FILE, Harm::FlipHeader, false),
    (End::Killed, FILE, Harm::Flip, false),
    (End::Killed, LOG, Harm::Cut, false),
    (End::Killed, LOG, Harm::Flip, false),
    (End::Killed, LOG, Harm::FlipHeader, false),
];

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Small)).await?;
    run.produce(rig, Load::little(20));
    run.published().await?;
    // Into the file, so that it has something to lose; then more, which is in the log alone.
    run.stop().await?;
    let stopped = rig.home.join("stopped");
    copy_directory(&run.server.data_dir, &stopped)?;
    ensure!(!stopped.join(LOG).exists(), "a log is left after a clean stop");
    run.server.start(&Launch::plain()).await?;
    run.produce(rig, Load::little(20));
    run.published().await?;
    run.kill().await?;
    let data = run.server.data_dir.clone();
    let mut rounds = 0;
    while rig.goes_on(rounds, WAYS.len() as u64, None) {
        let (end, file, harm, noticed) = WAYS[usize::try_from(rounds)? % WAYS.len()];
        let data = match end {
            End::Stopped => &stopped,
            End::Killed => &data,
        };
        let what = format!("{end:?}, {file} {harm:?}, the {rounds}th");
        let refused = one(rig, data, file, harm).await.with_context(|| what.clone())?;
        ensure!(refused || !noticed, "{what}: it started as if nothing were wrong");
        rig.count(if refused { "refused" } else { "started" }, 1);
        rounds += 1;
    }
    run.server.start(&Launch::plain()).await?;
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

/// Harms a copy of the data and starts a server on it. Says whether it refused.
async fn one(rig: &mut Rig, data: &Path, file: &str, harm: Harm) -> Result<bool> {
    let home = rig.home.join("harmed");
    let _ = fs::remove_dir_all(&home);
    copy_directory(data, &home.join("data"))?;
    do_harm(&home.join("data").join(file), harm, &mut rig.dice)?;
    let before = fs::read(home.join("data").join(FILE)).unwrap_or_default();
    let history = Arc::new(History::begin(&home)?);
    let mut server = Server::new(&rig.binary, &home, &home.join("data"), &history)?;
    server.spawn(&Launch::plain().with(&["--paused"]))?;
    if server.ready().await.is_err() {
        let status = server.end(secs(5)).await?;
        let log = server.log_tail();
        ensure!(status.code() == Some(2), "it ended with {status}: {log}");
        let says = REFUSALS.iter().any(|words| log.contains(words));
        ensure!(says, "it refused without a word about the data: {log}");
        let after = fs::read(home.join("data").join(FILE)).unwrap_or_default();
        ensure!(after == before, "it refused the store and changed it");
        return Ok(true);
    }
    has_something(&mut server).await?;
    Ok(false)
}

/// What was there is shown, or the server finds the harm now: it says that its store is broken, or leaves with that word.
async fn has_something(server: &mut Server) -> Result<()> {
    for path in ["/v1/destinations?limit=5", "/v1/outbound-events?limit=200", "/v1/deliveries?limit=200"] {
        match server.client.send(Method::GET, path, None, Bytes::new()).await {
            Ok(answer) if answer.status == 200 => {
                let some = answer.json["data"]["items"].as_array().is_some_and(|items| !items.is_empty());
                ensure!(some, "{path} is empty: it started with an empty store");
            }
            Ok(answer) => {
                let says = answer.json["error"].as_str().is_some_and(|text| text.contains(BROKEN));
                ensure!(answer.status == 503 && says, "{path}: {} {}", answer.status, answer.json);
            }
            Err(why) => {
                let status = server.end(secs(10)).await.with_context(|| format!("{path}: {why:?}"))?;
                let log = server.log_tail();
                ensure!(status.code() == Some(2) && log.contains(BROKEN), "it ended with {status}: {log}");
                break;
            }
        }
    }
    let log = server.log();
    let panicked = log.lines().find(|line| line.contains("panicked at"));
    ensure!(panicked.is_none(), "it panicked: {}", panicked.unwrap_or_default());
    Ok(())
}

fn do_harm(path: &Path, harm: Harm, dice: &mut Dice) -> Result<()> {
    let mut bytes = fs::read(path)?;
    let length = bytes.len() as u64;
    let place = |at: u64| usize::try_from(at);
    match harm {
        Harm::Gone => return fs::remove_file(path).context("it is there"),
        Harm::Empty => bytes.clear(),
        // Not within the first pages, and not at the end of one.
        Harm::Cut => bytes.truncate(place(length / 4 + dice.below(length / 2))?),
        // The words "SQLite format 3", or the log's magic number.
        Harm::FlipHeader => bytes[place(dice.below(4))?] ^= 1 << dice.below(8),
        Harm::Flip => {
            for _ in 0..8 {
                bytes[place(100 + dice.below(length - 100))?] ^= 1 << dice.below(8);
            }
        }
    }
    fs::write(path, bytes).context("the harm")
}
