//! The power goes: what the disk holds at that moment, without anything that was only in a cache, is what the server starts
//! on again.
//!
//! ```text
//!   outer.img ── XFS that can clone files ── disk.img ── direct loop ── ext4 ── the server's data
//!                                               └ a clone of it, taken while the server is frozen: the disk after the cut
//! ```
//!
//! A disk may also have some of what it was given and never asked to sync, a sector here and a sector there: every other cut
//! leaves a random half of these.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::ioctl_ficlone;
use rustix::process::Signal;
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, pass, secs, until};
use crate::database;
use crate::judge::Violations;
use crate::mounts::{Mount, make_image};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::tracer::{Injection, MISSING, Tracer};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "power-cut",
    about: "the disk as it is at a random moment, without caches, and with torn sectors; a server that syncs too little is caught",
    share: 6,
    run: |rig| Box::pin(run(rig)),
};

/// Cuts of the short form.
const SHORT: u64 = 4;
/// A server that does not wait for the disk loses something in one cut of three: that all of these miss it does not happen.
const WEAK_CUTS: u64 = 40;
/// A server whose disk is torn dies at one of its first syncs: so many …
const MOST_SYNCS: u64 = 60;
/// … which it gets to within this time.
const LONGEST_LIFE: Duration = secs(60);
/// What a disk writes as a whole, in bytes.
const SECTOR: usize = 512;
/// That server, in words.
const WEAK: &str = "a server that syncs too little";

async fn run(rig: &mut Rig) -> Result<Outcome> {
    if let Err(why) = Disk::make(&rig.home.join("probe")) {
        return Ok(Outcome::Skipped(format!("no loop devices or mounts here: {why:#}")));
    }
    let mut cuts = 0;
    let (mut run, mut disk) = begin(rig, "full", rig.binary.clone()).await?;
    let tears = tears(rig);
    let mut torn = 0;
    while rig.goes_on(cuts, SHORT, rig.wanted.cuts) {
        if tears && cuts % 2 == 1 {
            torn += torn_cut(rig, &mut run, &mut disk, cuts % 4 == 3).await?;
        } else {
            cut(rig, &mut run, &mut disk).await?;
        }
        cuts += 1;
    }
    rig.count("cuts", cuts);
    ensure!(torn > 0 || !tears, "{cuts} cuts, and there was nothing to tear");
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

/// Whether disks can be torn here.
fn tears(rig: &mut Rig) -> bool {
    let works = Tracer::works();
    if !works {
        rig.leave_out("disks that have parts of what was not synced", MISSING);
    }
    works
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
    start_again(run, disk).await
}

/// Cuts the power when a sync is asked for, and lets the disk have parts of what was to be synced. Says how many sectors.
///
/// The server dies at that call, which is not made, and the image is taken when it is gone: what it wrote stays in the cache for
/// seconds, and nothing is written that would need a sync of which the image does not know.
async fn torn_cut(rig: &mut Rig, run: &mut Run, disk: &mut Disk, at_checkpoint: bool) -> Result<u64> {
    run.kill().await?;
    if at_checkpoint {
        die_at_checkpoint(run).await?;
    } else {
        die_at_sync(run, 1 + rig.dice.below(MOST_SYNCS)).await?;
    }
    run.history.fault("power_cut", &json!({}));
    run.server.note_kill();
    run.world.drained().await?;
    disk.clone_now()?;
    let written = disk.written()?;
    disk.swap()?;
    let torn = disk.tear(&written, rig)?;
    start_again(run, disk).await?;
    Ok(torn)
}

/// Dies at its n-th sync, mostly of the log.
async fn die_at_sync(run: &mut Run, n: u64) -> Result<()> {
    run.server.spawn(&Tracer::new(&run.home).launch(&unsynced(n)))?;
    died(run).await
}

/// Dies at its first sync of the database: when it stops, and has copied there what is in the log.
async fn die_at_checkpoint(run: &mut Run) -> Result<()> {
    let tracer = Tracer::new(&run.home).only_file(&run.server.data_dir.join(database::FILE));
    run.server.start(&tracer.launch(&unsynced(1))).await?;
    run.server.signal(Signal::TERM)?;
    died(run).await
}

/// It dies at a call of `fsync`, which is not made.
fn unsynced(n: u64) -> Injection {
    Injection { calls: "fsync", what: format!("error=EIO:signal=SIGKILL:when={n}") }
}

async fn died(run: &mut Run) -> Result<()> {
    let server = &mut run.server;
    let died = until(LONGEST_LIFE, async || server.has_ended()).await;
    ensure!(died, "it does not get as far as the sync at which it is to die: {}", run.server.log_tail());
    Ok(())
}

/// The store is whole, and the server starts on it.
async fn start_again(run: &mut Run, disk: &Disk) -> Result<()> {
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

/// One of the store's files: its name, and what is in it.
type Contents = (&'static str, Vec<u8>);

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
        let (from, to) = (File::open(self.image())?, File::create(self.clone())?);
        ioctl_ficlone(to, from).context("the image cannot be cloned")
    }

    /// What was written to the store's files, whether or not the disk has it.
    fn written(&self) -> Result<Vec<Contents>> {
        let read = |name| Ok((name, fs::read(self.data_dir().join(name))?));
        [database::FILE, database::LOG].into_iter().map(read).collect()
    }

    /// Lets the disk have a random half of the sectors that were written and that it did not have. Says how many.
    ///
    /// Between two syncs a disk may write what it was given in any order, a sector at a time. The server was gone when the image
    /// was taken, so what differs was never synced, and any part of it may be there: of the log, frames of a commit that
    /// nobody was told of; of the database, pages of a checkpoint, all of which are in the log until the database is synced. A
    /// sector that was written in part has its old bytes beside the new ones in the cache, too. A file that has grown has zeros
    /// where it has nothing else: file systems that note a new length before the bytes that it is about leave such.
    fn tear(&self, written: &[Contents], rig: &mut Rig) -> Result<u64> {
        let mut all = 0;
        for (name, bytes) in written {
            let mut torn = 0;
            let path = self.data_dir().join(name);
            let mut held = fs::read(&path)?;
            let file = File::options().write(true).open(&path)?;
            if held.len() < bytes.len() {
                file.set_len(bytes.len() as u64)?;
                held.resize(bytes.len(), 0);
            }
            let sectors =
                held.chunks_exact(SECTOR).zip(bytes.chunks_exact(SECTOR)).zip((0..).step_by(SECTOR));
            for ((old, new), place) in sectors {
                if old != new && rig.dice.one_in(2) {
                    file.write_all_at(new, place)?;
                    torn += 1;
                }
            }
            file.sync_all()?;
            let log = *name == database::LOG;
            rig.count(if log { "torn sectors of the log" } else { "torn sectors of the database" }, torn);
            all += torn;
        }
        Ok(all)
    }

    /// The clone becomes the disk.
    fn swap(&mut self) -> Result<()> {
        self.inner = None;
        fs::rename(self.clone(), self.image())?;
        self.inner = Some(Mount::image(&self.image(), &self.home.join("disk"))?);
        Ok(())
    }
}
