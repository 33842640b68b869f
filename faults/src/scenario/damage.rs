//! Files that were cut or changed while nobody ran on them: the server refuses to start and says why, or it starts with what
//! is there. It never starts with an empty store instead, and never touches what it refuses.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use super::Scenario;
use crate::clock::{millis, pass, secs};
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

/// Each way to harm each file, and whether it has to be noticed at the start.
const WAYS: &[(&str, Harm, bool)] = &[
    (FILE, Harm::Cut, false),
    (FILE, Harm::Empty, true),
    (FILE, Harm::Gone, true),
    // The log has that page, too, and what it has counts.
    (FILE, Harm::FlipHeader, false),
    (FILE, Harm::Flip, false),
    (LOG, Harm::Cut, false),
    (LOG, Harm::Flip, false),
    (LOG, Harm::FlipHeader, false),
];

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Small)).await?;
    run.produce(rig, Load::little(20));
    run.published().await?;
    // Into the file, so that it has something to lose; then more, which is in the log alone.
    run.stop().await?;
    run.server.start(&Launch::plain()).await?;
    run.produce(rig, Load::little(20));
    run.published().await?;
    run.kill().await?;
    let data = run.server.data_dir.clone();
    let mut rounds = 0;
    while rig.goes_on(rounds, WAYS.len() as u64, None) {
        let (file, harm, noticed) = WAYS[usize::try_from(rounds)? % WAYS.len()];
        let refused =
            one(rig, &data, file, harm).await.with_context(|| format!("{file} {harm:?}, the {rounds}th"))?;
        ensure!(refused || !noticed, "{file} {harm:?}: it started as if nothing were wrong");
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
        let says = log.contains("cannot use the data directory") || log.contains("the store is broken");
        ensure!(says, "it refused without a word about the data: {log}");
        let after = fs::read(home.join("data").join(FILE)).unwrap_or_default();
        ensure!(after == before, "it refused the store and changed it");
        return Ok(true);
    }
    has_something(&mut server).await?;
    Ok(false)
}

/// What was there is shown, or the server finds the harm now and says so.
async fn has_something(server: &mut Server) -> Result<()> {
    for path in ["/v1/destinations?limit=5", "/v1/outbound-events?limit=200", "/v1/deliveries?limit=200"] {
        match server.client.get(path).await {
            Ok(page) => {
                let some = page["items"].as_array().is_some_and(|items| !items.is_empty());
                ensure!(some, "{path} is empty: it started with an empty store");
            }
            Err(error) => {
                pass(millis(200)).await;
                let log = server.log();
                if log.contains("panicked at") {
                    bail!("it panicked on {path}: {error:#}");
                }
            }
        }
    }
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
