//! The disk says that it could not sync: once or from then on, on a commit and while the log is emptied. What was not synced
//! is not acknowledged, the server leaves with a word about it, and what was acknowledged is there after a restart.

use anyhow::{Result, bail, ensure};

use super::Scenario;
use crate::clock::{millis, pass, secs, until};
use crate::database::{FILE, LOG};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Injection, MISSING, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "fsync-error",
    about: "EIO on an fsync, once or always, of a commit and of a checkpoint",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Rounds of the short form: each of the four ways once.
const SHORT: u64 = 4;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if !Tracer::works() {
        return Ok(Outcome::Skipped(MISSING.to_owned()));
    }
    let mut run = Run::begin(rig, Setting::new("", Cast::Small)).await?;
    let mut rounds = 0;
    while rig.goes_on(rounds, SHORT, None) {
        let (file, always) = (if rounds % 2 == 0 { LOG } else { FILE }, rounds / 2 % 2 == 1);
        run.stop().await?;
        round(rig, &mut run, file, always).await?;
        rounds += 1;
    }
    rig.count("errors", rounds);
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

/// One server that gets an error for one of its files, and one after it that does not.
async fn round(rig: &mut Rig, run: &mut Run, file: &str, always: bool) -> Result<()> {
    // The log is synced by each commit, the file only when the log is emptied.
    let first = if file == LOG { 3 + rig.dice.below(20) } else { 1 + rig.dice.below(2) };
    let when = if always { format!("{first}+") } else { first.to_string() };
    let tracer = Tracer::new(&run.home).only_file(&run.server.data_dir.join(file));
    let launch = tracer.launch(&Injection { calls: "fsync", what: format!("error=EIO:when={when}") });
    run.server.start(&launch).await?;
    let told = run.server.log().len();
    // With pauses, in which the log is emptied.
    let mut left = None;
    for _ in 0..40 {
        run.produce(rig, Load::little(3));
        pass(millis(300)).await;
        let silent = async || run.server.has_ended() || run.has_published();
        ensure!(until(secs(60), silent).await, "it is stuck: {}", run.server.log_tail());
        if run.server.has_ended() {
            left = Some(run.server.end(secs(1)).await?);
            break;
        }
        if file == FILE {
            pass(millis(1_300)).await;
        }
    }
    let Some(status) = left else {
        bail!("{} errors for {file}, and it went on: {}", tracer.injected().len(), run.server.log_tail())
    };
    ensure!(!status.success(), "it ended with {status} after an error of its disk");
    let log = run.server.log();
    let said = &log[told.min(log.len())..];
    ensure!(said.contains("the store is broken"), "it left without a word about its disk: {said}");
    run.server.note_kill();
    run.world.drained().await?;
    run.server.start(&Launch::plain()).await?;
    run.published().await
}
