//! Ten kills in ten seconds; killed while it recovers; killed while it makes its schema, which is there whole or not at all.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::Scenario;
use crate::clock::{millis, pass, secs};
use crate::database;
use crate::history::History;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::{Launch, Server};
use crate::tracer::{Injection, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "crash-loop",
    about: "ten kills in ten seconds, killed in recovery, killed while it makes its schema",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Kills of one loop.
const KILLS: u64 = 10;
/// A first start writes less often than this.
const MOST: u64 = 1_000;
/// It is killed so often at least, at each kind of call.
const LEAST: u64 = 2;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut loops = 0;
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, Load::usual());
    while rig.goes_on(loops, 1, None) {
        crash_loop(rig, &mut run).await?;
        loops += 1;
    }
    rig.count("loops of ten kills", loops);
    run.server.ready().await?;
    run.finish(rig).await?;
    if Tracer::works() {
        first_starts(rig, "pwrite64", 20).await?;
        first_starts(rig, "fsync", 2).await?;
    } else {
        rig.leave_out("killed while it makes its schema", crate::tracer::MISSING);
    }
    Ok(Outcome::Passed)
}

/// A second for each life. It comes up again at its own pace, and every other one dies before that.
async fn crash_loop(rig: &mut Rig, run: &mut Run) -> Result<()> {
    run.server.ready().await?;
    pass(millis(500)).await;
    for kill in 0..KILLS {
        run.kill().await?;
        run.server.spawn(&Launch::plain())?;
        let recovering = kill % 2 == 0;
        pass(millis(if recovering { rig.dice.below(250) } else { 500 + rig.dice.below(500) })).await;
    }
    Ok(())
}

/// Killed at each of these calls of a first start, which makes the schema.
async fn first_starts(rig: &mut Rig, calls: &'static str, stride: u64) -> Result<()> {
    let (mut point, mut killed) = (1, 0);
    while point < MOST && first_start(rig, calls, point).await? {
        killed += 1;
        point += if rig.is_short() { stride + rig.dice.below(2 * stride) } else { 1 };
    }
    ensure!(point < MOST, "a first start calls {calls} without end");
    ensure!(killed >= LEAST, "a first start was killed at {killed} of its {calls}, not at {LEAST}");
    rig.count("first starts killed", killed);
    Ok(())
}

/// Killed at this call. The next start finds nothing, or a whole schema. Says whether there was such a call at all.
async fn first_start(rig: &Rig, calls: &'static str, point: u64) -> Result<bool> {
    let home = rig.home.join(format!("first-{calls}-{point}"));
    std::fs::create_dir_all(&home)?;
    let history = Arc::new(History::begin(&home)?);
    let mut server = Server::new(&rig.binary, &home, &home.join("data"), &history)?;
    let what = format!("signal=SIGKILL:when={point}");
    server.spawn(&Tracer::new(&home).launch(&Injection { calls, what }))?;
    if server.ready().await.is_ok() {
        return Ok(false);
    }
    let ended = server.ended()?.and_then(|status| status.signal());
    let killed = ended == Some(Signal::KILL.as_raw());
    ensure!(killed, "at {calls} {point} of a first start it is not killed: {}", server.log_tail());
    server.start(&Launch::plain()).await?;
    let destinations = server.client.get("/v1/destinations").await?;
    ensure!(destinations["items"].as_array().is_some_and(Vec::is_empty), "{destinations}");
    server.terminate()?;
    ensure!(server.end(secs(60)).await?.success(), "it does not stop well: {}", server.log_tail());
    database::check_integrity(&home.join("data"), &home.join("scratch"))?;
    std::fs::remove_dir_all(&home)?;
    Ok(true)
}
