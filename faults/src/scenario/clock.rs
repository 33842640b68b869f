//! The wall clock jumps: an hour ahead, two back, ten years ahead and back, beyond 2038, to 1970, and over both changes of
//! daylight saving time.
//! The monotonic clock goes on as it does in reality.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::tz::TimeZone;
use serde_json::json;

use super::Scenario;
use crate::clock::{millis, now, pass, secs, until, wall, wall_ms};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "clock",
    about: "the wall clock jumps hours and years, both ways, beyond 2038, to 1970, and over daylight saving time",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// Milliseconds of ten years.
const TEN_YEARS: i64 = 3_650 * DAY;
/// Days from 1970 to the second of January of that year and of 2039: what counts seconds in 32 bits ends in 2038.
const EARLY_1970: i64 = 1;
const EARLY_2039: i64 = 25_203;
/// The zone with daylight saving time.
const ZONE: &str = "Europe/Berlin";
/// The clock is set to so long before a moment: for a look at what arrives there.
const LEAD: Duration = millis(1_600);
/// Events that are published for each look.
const HELD: u64 = 2;
/// A look at quiet hours takes so long …
const STAYS_QUIET: Duration = millis(700);
/// … and at others until everything has arrived, and no longer than this.
const OPENS: Duration = millis(1_500);

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let Some(library) = library() else {
        return Ok(Outcome::Skipped(
            "libfaketime is not here (Debian: apt-get install libfaketime)".to_owned(),
        ));
    };
    fs::create_dir_all(&rig.home)?;
    let clock = Clock { file: rig.home.join("offset") };
    clock.write(0)?;
    let jumps = retries(rig, &clock, &library).await?;
    rig.count("jumps", jumps);
    // None of these fails: what waits for its retry while the clock is ten years ahead is too old then.
    // The checker forgets every hold when a clock is set.
    let setting = Setting {
        launch: clock.launch(&library),
        silent_about: &["I9"],
        ..Setting::new("steady", Cast::Steady)
    };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, Load { brief: false, ..Load::usual() });
    let (mut jumps, mut rounds) = (0, 0);
    while rig.goes_on(rounds, 1, None) {
        for offset in [HOUR, -2 * HOUR, TEN_YEARS, 0, to_day(EARLY_2039), to_day(EARLY_1970), 0] {
            clock.jump(&run, offset).await?;
            jumps += 1;
        }
        jumps += saving_time(rig, &run, &clock).await?;
        // A start while the clock is wrong, and one when it is right again.
        clock.jump(&run, HOUR).await?;
        run.kill().await?;
        run.server.start(&clock.launch(&library)).await?;
        clock.jump(&run, 0).await?;
        run.kill().await?;
        run.server.start(&clock.launch(&library)).await?;
        rounds += 1;
    }
    rig.count("jumps", jumps);
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

/// From now to the same hour of a day that is counted from 1970.
fn to_day(day: i64) -> i64 {
    (day - wall_ms() / DAY) * DAY
}

/// What fails while the clock is ahead is tried again when it is set back, not when it is there again: in the same process, and in
/// the next.
async fn retries(rig: &mut Rig, clock: &Clock, library: &Path) -> Result<u64> {
    let setting = Setting { launch: clock.launch(library), ..Setting::new("retries", Cast::Small) };
    let mut run = Run::begin(rig, setting).await?;
    let mut jumps = 0;
    for (offset, restarts) in
        [(HOUR, false), (TEN_YEARS, false), (to_day(EARLY_2039), false), (HOUR, true), (TEN_YEARS, true)]
    {
        run.history.fault("clock", &json!({"offset_ms": offset}));
        clock.write(offset)?;
        run.produce(rig, Load::little(300));
        run.published().await?;
        if restarts {
            run.kill().await?;
        }
        run.history.fault("clock", &json!({"offset_ms": 0}));
        clock.write(0)?;
        if restarts {
            run.server.start(&clock.launch(library)).await?;
        }
        ensure!(
            until(secs(30), async || run.is_at_rest().await).await,
            "retries planned {offset} ms ahead wait for that: {}",
            run.server.log_tail()
        );
        jumps += 2;
    }
    run.finish(rig).await?;
    Ok(jumps)
}

/// A night in which clocks are changed, and quiet hours that whoever reckons with a usual night gets wrong.
struct Night {
    /// Into summer, where an hour is missing; or out of it, where one comes twice.
    into_summer: bool,
    start: &'static str,
    end: &'static str,
    edges: &'static [Edge],
}

/// A moment of such a night, and whether it is quiet before and after it.
struct Edge {
    /// From the change of the clocks.
    minutes: i64,
    quiet: (bool, bool),
}

const fn edge(minutes: i64, before: bool, after: bool) -> Edge {
    Edge { minutes, quiet: (before, after) }
}

const NIGHTS: &[Night] = &[
    // They end with the change, an hour and a half by the clock after they began: their own end is not there that night.
    Night {
        into_summer: true,
        start: "01:30",
        end: "02:30",
        edges: &[edge(-30, false, true), edge(0, true, false)],
    },
    // The hour that comes twice is quiet twice, without a gap.
    Night {
        into_summer: false,
        start: "02:00",
        end: "03:00",
        edges: &[edge(-60, false, true), edge(0, true, true), edge(60, true, false)],
    },
    // The change interrupts them: it is two o'clock once more, and open until half past two.
    Night {
        into_summer: false,
        start: "02:30",
        end: "03:30",
        edges: &[edge(0, true, false), edge(30, false, true)],
    },
];

/// Lives through the next nights in which clocks are changed. Says how often the clock was set for that.
async fn saving_time(rig: &mut Rig, run: &Run, clock: &Clock) -> Result<u64> {
    let zone = TimeZone::get(ZONE)?;
    let mut jumps = 0;
    run.ledger.leave_quiet_alone(true);
    for Night { into_summer, start, end, edges } in NIGHTS {
        let mut changes = zone.following(wall());
        let change =
            changes.find(|change| change.dst().is_dst() == *into_summer).context("no such change")?;
        let window = json!({
            "timezone": ZONE, "quiet_start": start, "quiet_end": end, "bypass_event_types": ["quiet.urgent"],
        });
        let ended = nothing_waits(run).await?;
        run.world.patch(&run.server.client, "quiet", &json!({"delivery_schedule": window})).await?;
        for edge in *edges {
            let at_ms = change.timestamp().as_millisecond() + edge.minutes * 60_000;
            cross(rig, run, clock, edge, at_ms, ended)
                .await
                .with_context(|| format!("quiet from {start} to {end}, at {at_ms} ms"))?;
            jumps += 1;
        }
    }
    run.ledger.leave_quiet_alone(false);
    clock.jump(run, 0).await?;
    Ok(jumps + 1)
}

/// Lets everything go that waits: a leap of months makes it too old. Says how many have ended so before, and never come.
async fn nothing_waits(run: &Run) -> Result<u64> {
    run.world.patch(&run.server.client, "quiet", &json!({"delivery_schedule": null})).await?;
    // What is being published ends first.
    pass(3 * run.world.jitter).await;
    let client = &run.server.client;
    let gone =
        until(secs(30), async || run.world.waiting(client, "quiet").await.is_ok_and(|waiting| waiting == 0))
            .await;
    ensure!(gone, "without quiet hours, something still waits: {}", run.server.log_tail());
    pass(run.world.jitter).await;
    Ok(run.held())
}

/// Sets the clock to just before the moment, and looks at what arrives on both sides of it.
async fn cross(rig: &mut Rig, run: &Run, clock: &Clock, edge: &Edge, at_ms: i64, ended: u64) -> Result<()> {
    // As much longer as it may take to see what happens.
    let lead = LEAD + 2 * run.world.jitter;
    let began = now();
    clock.set(run, at_ms - i64::try_from(lead.as_millis())? - wall_ms())?;
    let (before, after) = edge.quiet;
    // What was on its way when the clock was set arrives meanwhile.
    pass(run.world.jitter).await;
    run.backlog(rig, "quiet", HELD).await?;
    look(rig, run, before, ended).await.context("before it")?;
    pass(lead.saturating_sub(began.elapsed())).await;
    // What waits goes when it may, without anything new to wake it; what is new is held like the rest.
    if after {
        pass(run.world.jitter).await;
        run.backlog(rig, "quiet", HELD).await?;
    }
    look(rig, run, after, ended).await.context("after it")
}

/// Whether what quiet hours concern is held, or arrives.
async fn look(rig: &mut Rig, run: &Run, quiet: bool, ended: u64) -> Result<()> {
    let waiting = || run.held().saturating_sub(ended);
    if quiet {
        let held = waiting();
        ensure!(held > 0, "nothing waits for the end of quiet hours");
        pass(STAYS_QUIET).await;
        let still = waiting();
        ensure!(still == held, "of {held} only {still} are held in quiet hours: {}", run.server.log_tail());
    } else {
        let arrive = until(OPENS, async || waiting() == 0).await;
        ensure!(arrive, "{} wait, and it is not quiet: {}", waiting(), run.server.log_tail());
    }
    rig.count(if quiet { "looks at quiet hours" } else { "looks at open ones" }, 1);
    Ok(())
}

/// The offset of the server's wall clock, which it reads anew each time.
struct Clock {
    file: PathBuf,
}

impl Clock {
    fn launch(&self, library: &Path) -> Launch {
        let set = |name: &str, value: String| (name.to_owned(), value);
        Launch {
            environment: vec![
                set("LD_PRELOAD", library.display().to_string()),
                set("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
                set("FAKETIME_NO_CACHE", "1".to_owned()),
                set("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ],
            ..Launch::plain()
        }
    }

    /// At once, as a whole: it may be read at any moment.
    fn write(&self, offset_ms: i64) -> Result<()> {
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{:+.3}\n", offset_ms as f64 / 1_000.0))?;
        fs::rename(&next, &self.file).context("the file with the offset")
    }

    /// The clock of the run's server jumps.
    fn set(&self, run: &Run, offset_ms: i64) -> Result<()> {
        run.history.fault("clock", &json!({"offset_ms": offset_ms}));
        self.write(offset_ms)
    }

    /// The same, and both ends go on: events are accepted, and arrive.
    async fn jump(&self, run: &Run, offset_ms: i64) -> Result<()> {
        self.set(run, offset_ms)?;
        let arrived = || run.world.find("plain").map_or(0, |plain| plain.receiver.first_attempts());
        let (accepted, before) = (run.ledger.accepted(), arrived());
        let goes_on = async || run.ledger.accepted() > accepted + 20 && arrived() > before + 10;
        ensure!(
            until(secs(30), goes_on).await,
            "after a jump to {offset_ms} ms it stands still: {}",
            run.server.log_tail()
        );
        Ok(())
    }
}

/// Where Debian keeps it.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
}
