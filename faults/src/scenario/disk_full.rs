//! The disk fills up under load, again and again: publishing is refused without a wait, `/readyz` says so, nothing is sent whose
//! result cannot be stored, and everything goes on by itself soon after there is room. A server that is killed meanwhile starts on
//! the full disk, or says why it cannot.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, nanos, now, pass, secs, until};
use crate::mounts::Mount;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "disk-full",
    about: "a small disk is filled under load and freed again; killed and started on it",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Rounds of the short form.
const SHORT: u64 = 2;
/// The size of the disk: a log that is never emptied fits, so that it is our file that fills it.
const MEBIBYTES: u64 = 256;
/// A log that was longer once has room of its own: on a full disk events are taken until that is used up.
const NOTICES: Duration = secs(30);
/// No refusal takes longer.
const REFUSES: Duration = secs(2);
/// On a full disk it starts within this time, or ends.
const STARTS: Duration = secs(30);
/// It gets twenty events a second …
const SLOW: &str = "limited";
/// … of these, so that there is something to be sent for as long as the disk is full.
const BACKLOG: u64 = 80;
/// A look at what is sent on a full disk takes so long …
const LOOK: Duration = secs(1);
/// … and sees no more than this: what was under way.
const MOST_SENT: u64 = 10;
/// So soon after there is room it takes events again.
const GOES_ON: Duration = secs(10);

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let path = rig.home.join("disk");
    fs::create_dir_all(&path)?;
    let mount = match Mount::memory(&path, MEBIBYTES) {
        Ok(mount) => mount,
        Err(why) => return Ok(Outcome::Skipped(format!("no mounts here: {why:#}"))),
    };
    let setting = Setting { data_dir: Some(path.join("data")), ..Setting::new("", Cast::Whole) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load::usual());
    let mut rounds = 0;
    while rig.goes_on(rounds, SHORT, None) {
        pass(millis(200 + rig.dice.below(1_500))).await;
        round(rig, &mut run, &path.join("fill"), rounds % 2 == 1).await?;
        rounds += 1;
    }
    rig.count("times full", rounds);
    run.finish(rig).await?;
    drop(mount);
    Ok(Outcome::Passed)
}

/// The disk is full for a while. The server may have to die meanwhile, and to start on what there is.
async fn round(rig: &mut Rig, run: &mut Run, fill: &Path, dies: bool) -> Result<()> {
    run.backlog(rig, SLOW, BACKLOG).await?;
    run.history.fault("disk_full", &json!({}));
    let full_at = nanos();
    fill_up(fill)?;
    let filled = now();
    let refused = async || {
        // What it writes in gaps that emptying the log leaves is ours, too.
        let _ = fill_up(fill);
        run.poll_ready().await == Some(503)
            && run.ledger.answers_since(full_at).iter().any(|answer| answer.status == Some(503))
    };
    ensure!(
        until(NOTICES, refused).await,
        "{NOTICES:?} after the disk was full nothing is refused: {}",
        run.server.log_tail()
    );
    let noticed = filled.elapsed();
    sends_little(rig, run, fill).await?;
    if dies && starts_full(rig, run, fill).await? {
        sends_little(rig, run, fill).await?;
    }
    run.history.fault("disk_free", &json!({}));
    fs::remove_file(fill)?;
    let (free_at, began) = (nanos(), now());
    if run.server.has_ended() {
        run.server.start(&Launch::plain()).await?;
    } else if dies {
        run.server.ready().await?;
    }
    let goes_on = async || {
        run.poll_ready().await == Some(200)
            && run.ledger.answers_since(free_at).iter().any(|answer| answer.status == Some(202))
    };
    ensure!(
        until(GOES_ON, goes_on).await,
        "{GOES_ON:?} after there is room it still waits: {}",
        run.server.log_tail()
    );
    let mut refusals = run.ledger.answers_since(full_at);
    refusals.retain(|answer| answer.sent < free_at && answer.status == Some(503));
    ensure!(refusals.iter().all(|answer| answer.has_retry_after), "a refusal has no Retry-After");
    let slowest = refusals.iter().map(|answer| answer.answered - answer.sent).max();
    let slowest = Duration::from_nanos(slowest.unwrap_or(0));
    ensure!(slowest < REFUSES, "a refusal took {slowest:?}");
    rig.count("refusals", refusals.len() as u64);
    rig.note(format!(
        "noticed after {noticed:.1?}, refused within {slowest:.1?}, went on after {:.1?}",
        began.elapsed()
    ));
    Ok(())
}

/// What cannot be stored is not sent on and on: whoever got it would get it again after a crash.
async fn sends_little(rig: &mut Rig, run: &Run, fill: &Path) -> Result<()> {
    let began = now();
    while began.elapsed() < NOTICES {
        let (look, sent, at) = (now(), run.world.requests(), nanos());
        while look.elapsed() < LOOK {
            let _ = fill_up(fill);
            pass(millis(20)).await;
        }
        let sent = run.world.requests() - sent;
        // It has found a gap in the log, and room for some results in it.
        if run.ledger.answers_since(at).iter().any(|answer| answer.status == Some(202)) {
            continue;
        }
        let waiting = run.world.waiting(&run.server.client, SLOW).await?;
        ensure!(waiting > 0, "nothing waits that could be sent on a full disk");
        ensure!(sent <= MOST_SENT, "{sent} requests in {LOOK:?}, and no room for what comes of them");
        rig.count("looks at what is sent meanwhile", 1);
        return Ok(());
    }
    bail!("for {NOTICES:?} it takes events on a full disk")
}

/// Killed while the disk is full, it starts, waits until it can, or says why it cannot. Whether it has started.
async fn starts_full(rig: &mut Rig, run: &mut Run, fill: &Path) -> Result<bool> {
    run.kill().await?;
    // What ended with it has left no room, either.
    let _ = fill_up(fill);
    let said = run.server.log().len();
    run.server.spawn(&Launch::plain())?;
    let server = &mut run.server;
    let up = async || server.has_ended() || server.client.status("/readyz").await.is_some();
    ensure!(until(STARTS, up).await, "on a full disk it neither starts nor ends: {}", run.server.log_tail());
    if run.server.has_ended() {
        let log = run.server.log();
        let clear = log[said..].lines().any(|line| line.contains("full") || line.contains("No space"));
        ensure!(clear, "on a full disk it does not start, and does not say why: {}", run.server.log_tail());
        run.server.note_kill();
        rig.count("starts refused for want of room", 1);
        return Ok(false);
    }
    let has_started = run.world.waiting(&run.server.client, SLOW).await.is_ok();
    rig.count(if has_started { "starts on a full disk" } else { "starts that wait for room" }, 1);
    Ok(has_started)
}

/// Writes until there is no room.
fn fill_up(path: &Path) -> Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    let mut piece = vec![7_u8; 1 << 20];
    while !piece.is_empty() {
        match file.write(&piece) {
            Ok(written) if written > 0 => {}
            _ => piece.truncate(piece.len() / 2),
        }
    }
    Ok(())
}
