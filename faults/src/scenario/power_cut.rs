//! The power goes: what the disk holds at that moment, without anything that was only in a cache, is what the server starts
//! on again.
//!
//! ```text
//!   outer.img ── XFS that can clone files ── disk.img ── direct loop ── ext4 ── the server's data
//!                                               └ a clone of it, taken while the server is frozen: the disk after the cut
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, pass};
use crate::database;
use crate::judge::Violations;
use crate::mounts::{Mount, command, make_image};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "power-cut",
    about: "the disk as it is at a random moment, without caches; a server that syncs too little is caught",
    share: 6,
    run: |rig| Box::pin(run(rig)),
};

/// Cuts of the short form.
const SHORT: u64 = 4;
/// A server that does not wait for the disk loses something in one cut of three: that all of these miss it does not happen.
const WEAK_CUTS: u64 = 40;
/// That server, in words.
const WEAK: &str = "a server that syncs too little";

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if let Err(why) = Disk::make(&rig.home.join("probe")) {
        return Ok(Outcome::Skipped(format!("no loop devices or mounts here: {why:#}")));
    }
    let mut cuts = 0;
    let (mut run, mut disk) = begin(rig, "full", rig.binary.clone()).await?;
    while rig.goes_on(cuts, SHORT, rig.wanted.cuts) {
        cut(rig, &mut run, &mut disk).await?;
        cuts += 1;
    }
    rig.count("cuts", cuts);
    run.finish(rig).await?;
    drop(disk);
    match rig.weak_binary.clone() {
        _ if rig.is_short() => {}
        Some(weak) => rig.apart(WEAK, async |rig| weak_is_caught(rig, weak).await).await?,
        None => rig.leave_out(WEAK, "none was given (--weak-binary)"),
    }
    Ok(Outcome::Passed)
}

async fn begin(rig: &mut Rig, name: &str, binary: PathBuf) -> Result<(Run, Disk)> {
    let disk = Disk::make(&rig.home.join(name))?;
    let setting =
        Setting { data_dir: Some(disk.data_dir()), binary: Some(binary), ..Setting::new(name, Cast::Whole) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load { producers: 6, pace: millis(1), ..Load::usual() });
    Ok((run, disk))
}

/// Cuts the power at a random moment, and starts the server on what the disk holds.
async fn cut(rig: &mut Rig, run: &mut Run, disk: &mut Disk) -> Result<()> {
    pass(millis(20 + rig.dice.below(700))).await;
    // What was acknowledged before this must be on the disk. A sync that is under way goes on while the image is taken.
    run.server.signal(Signal::STOP)?;
    run.history.fault("power_cut", &json!({}));
    disk.clone_now()?;
    run.kill().await?;
    disk.swap()?;
    database::check_integrity(&disk.data_dir(), &run.home.join("scratch")).context("after a power cut")?;
    run.server.start(&Launch::plain()).await
}

/// The same with a server that acknowledges before the disk has it: its checker must say what was lost.
async fn weak_is_caught(rig: &mut Rig, weak: PathBuf) -> Result<()> {
    let (mut run, mut disk) = begin(rig, "weak", weak).await?;
    for _ in 0..WEAK_CUTS {
        cut(rig, &mut run, &mut disk).await?;
    }
    rig.count("cuts", WEAK_CUTS);
    match run.finish(rig).await {
        Ok(()) => bail!("{WEAK_CUTS} cuts of a server that syncs too little, and nobody noticed"),
        Err(error) => {
            let violations = error.downcast::<Violations>().context("of a server that syncs too little")?;
            ensure!(
                violations.are_of("I1"),
                "it lost something, but that was not what was found: {violations}"
            );
            rig.note(format!("it was caught: {violations}"));
            Ok(())
        }
    }
}

/// The disk, and the file system that its image lies in. Dropped in this order.
struct Disk {
    inner: Option<Mount>,
    _outer: Mount,
    home: PathBuf,
}

impl Disk {
    fn make(home: &Path) -> Result<Self> {
        fs::create_dir_all(home)?;
        let outer_image = home.join("outer.img");
        make_image(&outer_image, 12_288, &["mkfs.xfs", "-q", "-f", "-m", "reflink=1"])?;
        let outer = Mount::image(&outer_image, &home.join("outer"))?;
        let mut disk = Self { inner: None, _outer: outer, home: home.to_owned() };
        make_image(&disk.image(), 4_096, &["mkfs.ext4", "-q", "-F"])?;
        disk.inner = Some(Mount::image(&disk.image(), &home.join("disk"))?);
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.home.join("outer/disk.img")
    }

    fn clone(&self) -> PathBuf {
        self.home.join("outer/clone.img")
    }

    fn data_dir(&self) -> PathBuf {
        self.home.join("disk/data")
    }

    /// What is on the disk now.
    fn clone_now(&self) -> Result<()> {
        let (from, to) = (self.image().display().to_string(), self.clone().display().to_string());
        command("cp", &["--reflink=always", &from, &to])?;
        Ok(())
    }

    /// The clone becomes the disk.
    fn swap(&mut self) -> Result<()> {
        self.inner = None;
        fs::rename(self.clone(), self.image())?;
        self.inner = Some(Mount::image(&self.image(), &self.home.join("disk"))?);
        Ok(())
    }
}
