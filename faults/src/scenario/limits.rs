//! Few descriptors, and little memory: the server sheds load, does not panic, and loses nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::net::TcpStream;

use super::Scenario;
use crate::clock::{millis, now, pass, secs, until};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "limits",
    about: "256 descriptors with 400 clients at the door; little memory",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

/// What the server may have open.
const DESCRIPTORS: u64 = 256;
/// Events for a destination that takes twenty a second: they last for as long as a crowd stays …
const BACKLOG: u64 = 120;
/// … and of which so many are delivered at least while it does.
const LEAST: u64 = 15;
/// Clients that connect and ask nothing.
const IDLERS: usize = 400;
/// After so many in vain, the door is shut and those outside are enough.
const SHUT: usize = 5;
/// Who is not let in by then waits outside.
const LET_IN: Duration = millis(200);
/// What the server and its part of the page cache may take in the short form: less than they would …
const SHORT_MEMORY: u64 = 72 << 20;
/// … and in the long one, whose backlog is as long as the machine is fast.
const LONG_MEMORY: u64 = 256 << 20;
/// Events that are published to a server with little memory, in the short form …
const SHORT_EVENTS: u64 = 15_000;
/// … and in the long one.
const LONG_EVENTS: u64 = 200_000;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    descriptors(rig).await?;
    let limit = if rig.is_short() { SHORT_MEMORY } else { LONG_MEMORY };
    match Cell::make(limit) {
        Ok(cell) => memory(rig, &cell, limit).await?,
        Err(why) => rig.leave_out("memory", format_args!("{why:#}")),
    }
    Ok(Outcome::Passed)
}

async fn descriptors(rig: &mut Rig) -> Result<()> {
    let launch = Launch::inside(&["prlimit", &format!("--nofile={DESCRIPTORS}:{DESCRIPTORS}")]);
    let setting = Setting { launch, ..Setting::new("descriptors", Cast::Whole) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load::usual());
    let mut rounds = 0;
    while rig.goes_on(rounds, 1, None) {
        run.history.fault("strain", &json!({"of": "descriptors"}));
        // Nobody can publish while the door is blocked: this is what there is to be delivered meanwhile.
        run.backlog(rig, "limited", BACKLOG).await?;
        let idlers = crowd(&run).await;
        let delivers = deliveries(&run);
        pass(secs(if rig.is_short() { 2 } else { 3 })).await;
        ensure!(!run.server.has_ended(), "it ended for want of descriptors: {}", run.server.log_tail());
        let delivered = deliveries(&run) - delivers;
        ensure!(delivered >= LEAST, "{delivered} deliveries beside a crowd: {}", run.server.log_tail());
        rig.note(format!("{delivered} deliveries beside a crowd of {}", idlers.len()));
        drop(idlers);
        let accepted = run.ledger.accepted();
        let goes_on = async || run.is_ready().await && run.ledger.accepted() > accepted;
        ensure!(until(secs(60), goes_on).await, "it does not recover: {}", run.server.log_tail());
        run.history.fault("relief", &json!({"of": "descriptors"}));
        rounds += 1;
    }
    rig.count("crowds at the door", rounds);
    let most = run.most_descriptors();
    ensure!(
        most > DESCRIPTORS / 2,
        "the crowd took no more than {most} descriptors: there was no want of any"
    );
    ensure!(most < DESCRIPTORS, "the crowd took every descriptor");
    let log = run.server.log();
    let without = log.lines().find(|line| line.contains("Too many open files"));
    ensure!(without.is_none(), "the crowd took every descriptor: {without:?}");
    run.finish(rig).await
}

/// Connects until the door is shut.
async fn crowd(run: &Run) -> Vec<TcpStream> {
    let mut idlers = Vec::new();
    let mut shut = 0;
    while idlers.len() < IDLERS && shut < SHUT {
        let connect = TcpStream::connect(run.server.address());
        match tokio::time::timeout(LET_IN, connect).await {
            Ok(Ok(idler)) => idlers.push(idler),
            _ => shut += 1,
        }
    }
    idlers
}

/// What has come of the backlog.
fn deliveries(run: &Run) -> u64 {
    run.world.find("limited").map_or(0, |limited| limited.receiver.first_attempts())
}

async fn memory(rig: &mut Rig, cell: &Cell, limit: u64) -> Result<()> {
    let join = format!("echo $$ > {} && exec \"$@\"", cell.path.join("cgroup.procs").display());
    let launch = Launch::inside(&["sh", "-c", &join, "sh"]);
    let setting = Setting { launch, ..Setting::new("memory", Cast::Whole) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load::heavy());
    let began = now();
    let most = if rig.is_short() { SHORT_EVENTS } else { LONG_EVENTS };
    while rig.goes_on(began.elapsed().as_secs(), 3, None) && run.ledger.accepted() < most {
        pass(millis(50)).await;
        ensure!(!run.server.has_ended(), "it was killed for want of memory: {}", run.server.log_tail());
    }
    // Each more event is one more to be written down and judged.
    run.stop_producing().await?;
    run.finish(rig).await?;
    let peak = cell.peak()?;
    rig.note(format!("of {} MiB it had {} MiB with its page cache", limit >> 20, peak >> 20));
    let bound = !rig.is_short() || peak >= limit / 10 * 9;
    ensure!(bound, "it had {} MiB: that was no want of memory", peak >> 20);
    Ok(())
}

/// A control group with little memory. It is removed when it is dropped, after its processes.
struct Cell {
    path: PathBuf,
}

impl Drop for Cell {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

impl Cell {
    /// The most that its processes and what they have cached took of memory, in bytes.
    fn peak(&self) -> Result<u64> {
        let read = |name| fs::read_to_string(self.path.join(name));
        let text = read("memory.max_usage_in_bytes").or_else(|_| read("memory.peak"))?;
        text.trim().parse().context("a number of bytes")
    }

    fn make(limit: u64) -> Result<Self> {
        let name = format!("tidegate-faults-{}", std::process::id());
        let ways = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let (root, file) = ways
            .into_iter()
            .find(|(root, _)| Path::new(root).join("cgroup.procs").exists())
            .context("no control groups for memory")?;
        let cell = Self { path: Path::new(root).join(name) };
        fs::create_dir(&cell.path).context("no control group can be made")?;
        fs::write(cell.path.join(file), limit.to_string()).context("its memory cannot be limited")?;
        Ok(cell)
    }
}
