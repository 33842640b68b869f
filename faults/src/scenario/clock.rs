//! The wall clock jumps: an hour ahead, two back, ten years ahead and back, beyond 2038, to 1970, and over both changes of
//! daylight saving time.
//! The monotonic clock goes on as it does in reality.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use jiff::tz::TimeZone;
use serde_json::json;

use super::Scenario;
use crate::clock::{pass, secs, until, wall, wall_ms};
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
        for Change { at_ms, start, end } in over_saving_time()? {
            let bypass = ["quiet.urgent"];
            let window = json!({"timezone": ZONE, "quiet_start": start, "quiet_end": end, "bypass_event_types": bypass});
            run.world.patch(&run.server.client, "quiet", &json!({"delivery_schedule": window})).await?;
            clock.jump(&run, at_ms - 4_000 - wall_ms()).await?;
            pass(secs(6)).await;
            clock.jump(&run, 0).await?;
            jumps += 2;
        }
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

/// A change of daylight saving time, and a window of quiet hours that touches it.
struct Change {
    at_ms: i64,
    start: &'static str,
    end: &'static str,
}

/// The next two: into summer, where an hour is missing, and out of it, where one comes twice.
fn over_saving_time() -> Result<Vec<Change>> {
    let zone = TimeZone::get(ZONE)?;
    let changes = zone.following(wall()).take(2).map(|change| {
        let (start, end) = if change.dst().is_dst() { ("01:30", "02:00") } else { ("02:00", "02:30") };
        Change { at_ms: change.timestamp().as_millisecond(), start, end }
    });
    Ok(changes.collect())
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

    /// The clock jumps, and both ends go on: events are accepted, and arrive.
    async fn jump(&self, run: &Run, offset_ms: i64) -> Result<()> {
        run.history.fault("clock", &json!({"offset_ms": offset_ms}));
        self.write(offset_ms)?;
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
