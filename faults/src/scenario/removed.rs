//! The store's file is moved away, or cannot be written any more, while the server runs: it takes nothing more and leaves
//! with a word about it. With the file back in its place, nothing is missing.

use std::fs;

use anyhow::{Result, ensure};

use super::Scenario;
use crate::clock::{millis, pass, secs};
use crate::database::{FILE, LOG};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Injection, MISSING, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "removed",
    about: "the database is moved away, or becomes read-only, while the server runs",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, Load::usual());
    let mut rounds = 0;
    while rig.goes_on(rounds, 1, None) {
        pass(millis(rig.dice.below(1_000))).await;
        moved_away(&mut run).await?;
        if Tracer::works() {
            read_only(rig, &mut run).await?;
        } else {
            rig.leave_out("a database that becomes read-only", MISSING);
        }
        rounds += 1;
    }
    rig.count("rounds", rounds);
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

async fn moved_away(run: &mut Run) -> Result<()> {
    let file = run.server.data_dir.join(FILE);
    let aside = run.home.join("aside");
    fs::rename(&file, &aside)?;
    left(run, "was removed or replaced").await?;
    // A log without its file tells that something is missing; without a log, it is for the operator to know.
    if run.server.data_dir.join(LOG).exists() {
        run.server.spawn(&Launch::plain())?;
        ensure!(run.server.end(secs(60)).await?.code() == Some(2), "it starts without its file");
        run.server.note_kill();
    }
    fs::rename(&aside, &file)?;
    run.server.start(&Launch::plain()).await
}

async fn read_only(rig: &mut Rig, run: &mut Run) -> Result<()> {
    run.kill().await?;
    let when = 10 + rig.dice.below(200);
    let injection = Injection { calls: "pwrite64", what: format!("error=EROFS:when={when}+") };
    let launch = Tracer::new(&run.home).only_file(&run.server.data_dir.join(LOG)).launch(&injection);
    run.server.spawn(&launch)?;
    left(run, "the store is broken").await?;
    run.server.start(&Launch::plain()).await
}

/// It ends by itself, and says why.
async fn left(run: &mut Run, word: &str) -> Result<()> {
    let status = run.server.end(secs(60)).await?;
    let log = run.server.log_tail();
    ensure!(!status.success() && log.contains(word), "it ended with {status}: {log}");
    run.server.note_kill();
    run.world.drained().await
}
