//! SIGTERM under load: it ends well, nothing comes twice; past its drain limit, and on a second signal, it leaves what is in
//! flight.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, now, pass, secs, until};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "sigterm",
    about: "SIGTERM under load, a drain limit that passes, a second SIGTERM",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Clean stops of the short form.
const SHORT: u64 = 3;
/// What a stop takes beside its drain limit: last calls, and commits on a slow machine.
const BESIDE: Duration = secs(40);

async fn run(rig: &mut Rig) -> Result<Outcome> {
    clean_stops(rig).await?;
    rig.count("stops past the drain limit", 1);
    leaves(rig, "drain-limit", false).await?;
    rig.count("second signals", 1);
    leaves(rig, "second-signal", true).await?;
    Ok(Outcome::Passed)
}

/// Stopped and started under load. None of it explains a repeat.
async fn clean_stops(rig: &mut Rig) -> Result<()> {
    let mut run = Run::begin(rig, Setting::new("clean", Cast::Whole)).await?;
    run.produce(rig, Load::usual());
    let mut stops = 0;
    while rig.goes_on(stops, SHORT, None) {
        pass(millis(rig.dice.below(1_000))).await;
        run.stop().await?;
        stops += 1;
        run.server.start(&Launch::plain()).await?;
    }
    rig.count("clean stops", stops);
    run.finish(rig).await
}

/// Stopped while a destination takes longer than it may.
async fn leaves(rig: &mut Rig, name: &str, at_once: bool) -> Result<()> {
    let launch = Launch::plain().with(&["--drain-limit", if at_once { "10min" } else { "1s" }]);
    let setting = Setting { launch, ..Setting::new(name, Cast::Slow) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load::usual());
    let slow = run.world.clone();
    let under_way = async || slow.find("slow").is_some_and(|slow| slow.receiver.requests() > 0);
    ensure!(until(secs(30), under_way).await, "nothing came to the slow destination");
    let began = now();
    run.server.terminate()?;
    if at_once {
        pass(millis(300)).await;
        run.history.fault("kill", &json!({"by": "a second SIGTERM"}));
        run.server.signal(Signal::TERM)?;
    }
    let status = run.server.end(secs(1) + BESIDE).await?;
    rig.note(format!("left after {:.1} s", began.elapsed().as_secs_f64()));
    let log = run.server.log_tail();
    if at_once {
        ensure!(!status.success() && log.contains("second signal"), "it ended with {status}: {log}");
    } else {
        ensure!(status.success(), "it ended with {status} after its drain limit: {log}");
    }
    run.world.drained().await?;
    run.server.start(&Launch::plain()).await?;
    run.finish(rig).await
}
