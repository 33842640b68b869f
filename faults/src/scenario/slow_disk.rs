//! Every fsync takes long: publishing slows down with it, memory does not grow, and every bound holds.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::Scenario;
use crate::clock::{pass, secs};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Injection, MISSING, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "slow-disk",
    about: "each fsync takes 50 ms to 2 s, and hundreds publish at once",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

/// Milliseconds of an fsync, from round to round.
const DELAYS: &[u64] = &[50, 500, 2_000];
/// Publishers that come at once, in each round.
const CROWD: u64 = 300;
/// Each of them is answered within this time: what is not stored yet, a commit under way and one for all of them, with several
/// syncs each.
const ANSWERS: Duration = secs(30);
/// What it takes of memory, with all of them waiting.
const MEMORY: u64 = 200 << 20;
/// Rounds of the short form.
const SHORT: u64 = 2;

/// Many publish at once: each is answered in time, and who waits takes little memory.
async fn crowd(rig: &mut Rig, run: &Run, delay: u64) -> Result<()> {
    let answers = run.crowd(rig, CROWD).await;
    ensure!(answers.len() as u64 >= CROWD, "{} of {CROWD} publishers were heard", answers.len());
    let strange = answers.iter().find(|answer| !matches!(answer.status, Some(202 | 503)));
    ensure!(
        strange.is_none(),
        "one of {CROWD} publishers was answered {strange:?}: {}",
        run.server.log_tail()
    );
    let longest = answers.iter().map(|answer| answer.answered - answer.sent).max();
    let longest = Duration::from_nanos(longest.unwrap_or(0));
    ensure!(longest < ANSWERS, "one of {CROWD} publishers was answered after {longest:?}");
    let memory = run.most_memory();
    ensure!(memory < MEMORY, "with {CROWD} publishers it takes {} MiB", memory >> 20);
    let refused = answers.iter().filter(|answer| answer.status == Some(503)).count();
    rig.note(format!("{delay} ms: a crowd answered within {longest:.1?}, {refused} refused"));
    rig.count("publishers at once", CROWD);
    Ok(())
}

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if !Tracer::works() {
        return Ok(Outcome::Skipped(MISSING.to_owned()));
    }
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, Load { producers: 6, ..Load::usual() });
    run.history.fault("strain", &json!({"of": "the disk"}));
    let mut rounds = 0;
    while rig.goes_on(rounds, SHORT, None) {
        let delay = DELAYS[usize::try_from(rounds)? % DELAYS.len()];
        run.kill().await?;
        let tracer = Tracer::new(&run.home);
        let what = format!("delay_enter={}", delay * 1_000);
        run.server.start(&tracer.launch(&Injection { calls: "fsync", what })).await?;
        let before = run.ledger.accepted();
        pass(secs(if rig.is_short() { 3 } else { 10 })).await;
        ensure!(run.ledger.accepted() > before, "nothing was accepted with {delay} ms for an fsync");
        crowd(rig, &run, delay).await?;
        rounds += 1;
    }
    run.kill().await?;
    run.server.start(&Launch::plain()).await?;
    run.history.fault("relief", &json!({"of": "the disk"}));
    rig.count("rounds", rounds);
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}
