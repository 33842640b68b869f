//! Every fsync takes long: publishing slows down with it, memory does not grow, and every bound holds.

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
    about: "each fsync takes 50 ms to 2 s",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

/// Milliseconds of an fsync, from round to round.
const DELAYS: &[u64] = &[50, 500, 2_000];
/// Rounds of the short form.
const SHORT: u64 = 2;

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
        rounds += 1;
    }
    run.kill().await?;
    run.server.start(&Launch::plain()).await?;
    run.history.fault("relief", &json!({"of": "the disk"}));
    rig.count("rounds", rounds);
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}
