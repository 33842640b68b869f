//! The disk fills up under load, again and again: publishing is refused without a wait, `/readyz` says so, and everything goes on
//! by itself soon after there is room.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, nanos, now, pass, secs, until};
use crate::mounts::Mount;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "disk-full",
    about: "a small disk is filled under load and freed again",
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
        round(rig, &run, &path.join("fill")).await?;
        rounds += 1;
    }
    rig.count("times full", rounds);
    run.finish(rig).await?;
    drop(mount);
    Ok(Outcome::Passed)
}

async fn round(rig: &mut Rig, run: &Run, fill: &Path) -> Result<()> {
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
    pass(millis(500 + rig.dice.below(2_000))).await;
    run.history.fault("disk_free", &json!({}));
    fs::remove_file(fill)?;
    let (free_at, began) = (nanos(), now());
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
