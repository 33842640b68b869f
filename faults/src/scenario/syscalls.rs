//! Killed at every fsync, write to the files, write to a socket and connection of a small scenario, one after the other.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Scenario;
use crate::clock::{secs, until};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Injection, MISSING, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "syscalls",
    about: "killed at every fsync, pwrite64, sendto or writev, and connect of a small scenario",
    share: 4,
    run: |rig| Box::pin(run(rig)),
};

/// The calls at which it dies, and at how many points at least: a scenario with fewer does not do what it is meant to.
const CALLS: &[(&str, u64)] = &[("fsync", 4), ("pwrite64", 10), ("sendto,writev", 4), ("connect", 1)];
/// Points of each in the short form, where there are so many.
const SHORT: u64 = 2;
/// One run may have fewer calls than the next, which makes others of what has gathered: after so many survivors in a row there are no
/// more points.
const SURVIVORS: u64 = 3;
/// The scenario has fewer calls of each kind than this; if not, something calls without end.
const MOST: u64 = 2_000;
/// Requests of each producer in the scenario.
const REQUESTS: u64 = 4;
/// No part of it takes longer, also where each call is traced.
const LONGEST: Duration = secs(120);

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if !Tracer::works() {
        return Ok(Outcome::Skipped(MISSING.to_owned()));
    }
    for (calls, least) in CALLS {
        let mut run = Run::begin(rig, Setting::new(&calls.replace(',', "-"), Cast::Small)).await?;
        run.kill().await?;
        let (mut point, mut killed, mut survived) = (1, 0, 0);
        while point < MOST && survived < SURVIVORS {
            if at_point(rig, &mut run, calls, point).await? {
                (killed, survived) = (killed + 1, 0);
            } else {
                survived += 1;
            }
            if rig.is_short() && killed >= SHORT {
                break;
            }
            // A sample has points near the start and far from it, and comes back from beyond the last.
            point = match (rig.is_short(), survived) {
                (false, _) => point + 1,
                (true, 0) => point + 1 + rig.dice.below(3 * point + 1),
                (true, _) => 1 + rig.dice.below(point),
            };
        }
        ensure!(point < MOST, "{calls} are called without end");
        let least = if rig.is_short() { (*least).min(SHORT) } else { *least };
        ensure!(killed >= least, "it died at {killed} of its {calls}, not at {least}");
        rig.count("points of death", killed);
        run.server.start(&Launch::plain()).await?;
        run.finish(rig).await?;
    }
    Ok(Outcome::Passed)
}

/// The scenario, killed at the n-th call: start, publish, deliver, stop. Then it starts unharmed, and everything comes to
/// rest. Says whether it was killed at all.
async fn at_point(rig: &mut Rig, run: &mut Run, calls: &'static str, point: u64) -> Result<bool> {
    let mut tracer = Tracer::new(&run.home);
    if calls == "pwrite64" {
        for file in ["tidegate.db", "tidegate.db-wal"] {
            tracer = tracer.only_file(&run.server.data_dir.join(file));
        }
    }
    // Calls are counted by thread: with one that sends, and one that writes, every call is one of the points.
    let launch = tracer.launch(&Injection { calls, what: format!("signal=SIGKILL:when={point}") });
    let launch = launch.with(&["--threads", "1"]);
    run.server.spawn(&launch)?;
    run.produce(rig, Load::little(REQUESTS));
    let over = until(LONGEST, async || {
        run.server.has_ended() || (run.has_published() && run.is_ready().await && run.is_at_rest().await)
    });
    ensure!(over.await, "before {calls} {point} it is stuck: {}", run.server.log_tail());
    // Its stop belongs to the scenario, too.
    if !run.server.has_ended() {
        let _ = run.server.terminate();
    }
    let killed = !run.server.end(LONGEST).await?.success();
    if killed {
        run.server.note_kill();
    }
    run.world.drained().await?;
    run.server.start(&Launch::plain()).await?;
    run.published().await?;
    run.world.come_to_rest(&run.server.client, LONGEST).await?;
    run.kill().await?;
    Ok(killed)
}
