//! The disk says that it could not sync: once or from then on, on a commit and while the log is emptied. What was not synced
//! is not acknowledged, the server leaves with a word about it, and what was acknowledged is there after a restart.
//!
//! The bytes stay in the system's cache and are there after a restart whatever the disk said: what was acknowledged too early is
//! not lost here. So it is told by time: when each sync began, and when each publication was asked for and answered.

use anyhow::{Result, bail, ensure};
use http::Method;
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, nanos, pass, secs, until};
use crate::database::{FILE, LOG};
use crate::ledger::Answered;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Call, Injection, MISSING, Tracer};
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
    run.stop().await?;
    lying_disk(rig, &mut run).await?;
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

/// One server that gets an error for one of its files, and one after it that does not.
async fn round(rig: &mut Rig, run: &mut Run, file: &str, always: bool) -> Result<()> {
    // One publication at a time and nothing else that is committed: each sync is that of one answer.
    let alone = file == LOG && !always;
    // The log is synced by each commit, the file only when the log is emptied.
    let first = match (file == LOG, alone) {
        (true, true) => 3 + rig.dice.below(10),
        (true, false) => 3 + rig.dice.below(20),
        (false, _) => 1 + rig.dice.below(2),
    };
    let when = if always { format!("{first}+") } else { first.to_string() };
    let tracer = Tracer::new(&run.home).only_file(&run.server.data_dir.join(file));
    let launch = tracer.launch(&Injection { calls: "fsync", what: format!("error=EIO:when={when}") });
    run.server.start(&if alone { launch.with(&["--paused"]) } else { launch }).await?;
    let ready_at = nanos();
    let told = run.server.log().len();
    // With pauses, in which the log is emptied.
    let mut left = None;
    for _ in 0..40 {
        let little = Load::little(3);
        run.produce(rig, Load { producers: if alone { 0 } else { little.producers }, ..little });
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
    let calls = tracer.calls();
    let Some(status) = left else {
        acknowledged(rig, file, &calls, &run.ledger.answers_since(ready_at))?;
        let errors = calls.iter().filter(|call| call.injected).count();
        bail!("{errors} errors for {file}, and it went on: {}", run.server.log_tail())
    };
    ensure!(!status.success(), "it ended with {status} after an error of its disk");
    let log = run.server.log();
    let said = &log[told.min(log.len())..];
    ensure!(said.contains("the store is broken"), "it left without a word about its disk: {said}");
    run.server.note_kill();
    run.world.drained().await?;
    let over_at = nanos();
    run.server.start(&Launch::plain()).await?;
    if alone {
        go_on(run).await?;
    }
    run.published().await?;
    let of_that_life = |answer: &Answered| answer.sent < over_at;
    let answers: Vec<_> = run.ledger.answers_since(ready_at).into_iter().filter(of_that_life).collect();
    // What failed before it was ready, and was no reason to leave, was no commit.
    let calls: Vec<_> = calls.into_iter().filter(|call| call.at > ready_at).collect();
    acknowledged(rig, file, &calls, &answers)
}

/// A disk that does nothing and says that it did: the server cannot know, and acknowledges. Whoever compares must notice, as with a
/// server that does not care what its disk says.
async fn lying_disk(rig: &mut Rig, run: &mut Run) -> Result<()> {
    let tracer = Tracer::new(&run.home).only_file(&run.server.data_dir.join(LOG));
    let launch = tracer.launch(&Injection { calls: "fsync", what: "retval=0:when=6+".to_owned() });
    run.server.start(&launch.with(&["--paused"])).await?;
    let ready_at = nanos();
    run.produce(rig, Load { producers: 0, ..Load::little(8) });
    run.published().await?;
    run.kill().await?;
    let Err(told) = acknowledged(rig, LOG, &tracer.calls(), &run.ledger.answers_since(ready_at)) else {
        bail!("acknowledged without a sync, and nobody noticed")
    };
    rig.note(format!("a disk that lies is noticed: {told}"));
    run.server.start(&Launch::plain()).await?;
    go_on(run).await
}

/// A pause outlives the server that was started with it.
async fn go_on(run: &Run) -> Result<()> {
    run.server.client.must(Method::PATCH, "/v1/settings", &json!({"paused": false})).await?;
    Ok(())
}

/// Nothing that was asked for after an error is acknowledged, and nothing without a good sync of the log between question and
/// answer.
fn acknowledged(rig: &mut Rig, file: &str, calls: &[Call], answers: &[Answered]) -> Result<()> {
    let failed_at = calls.iter().filter(|call| call.injected).map(|call| call.at).min().unwrap_or(u64::MAX);
    for answer in answers.iter().filter(|answer| answer.status == Some(202)) {
        let after = answer.answered.saturating_sub(failed_at) / 1_000;
        ensure!(
            answer.sent < failed_at,
            "asked for after an error for {file}, acknowledged {after} us after it"
        );
        if file == LOG {
            let synced = |call: &Call| !call.injected && (answer.sent..answer.answered).contains(&call.at);
            ensure!(
                calls.iter().any(synced),
                "acknowledged, and no sync of the log went well meanwhile; the first error was {after} us before"
            );
            rig.count("acknowledged after their sync", 1);
        }
    }
    Ok(())
}
