//! The looks that need no running server.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use tidegate_store::postgres;

use super::Finding;
use crate::config::Config;

/// Below this there is no room for a busy day.
const LITTLE_ROOM: u64 = 1 << 30;
/// Below this the store will soon be full.
const NO_ROOM: u64 = 64 << 20;
/// A disk that needs longer for each commit makes publishing slow.
const SLOW_SYNC: Duration = Duration::from_millis(50);
/// A database that is farther away makes publishing slow.
const FAR_DATABASE: Duration = Duration::from_millis(10);
/// Syncs to measure: the middle one counts.
const SYNCS: usize = 9;
/// Fewer open files than this are too few for many destinations.
const FEW_FILES: u64 = 4_096;
/// A clock before this was never set: no build is older.
const EARLIEST: u64 = 1_767_225_600; // 2026-01-01
/// Where SQLite keeps the version of the schema: `user_version` in the header of the file.
const SCHEMA_OFFSET: u64 = 60;

pub(super) fn all(config: &Config) -> Vec<Finding> {
    let mut findings = vec![clock(), time_zones(), files()];
    findings.extend(directory(&config.data_dir));
    match &config.database_url {
        None => findings.push(schema(&config.data_dir)),
        Some(url) => findings.extend(database(url.reveal())),
    }
    findings.push(key(config));
    findings
}

#[expect(clippy::disallowed_methods, reason = "the clock itself is what is looked at")]
fn clock() -> Finding {
    let (wall, mono) = (SystemTime::now(), Instant::now());
    let seconds = wall.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let shown = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let shown = shown.map_or_else(|| "out of range".to_owned(), |at| at.to_string());
    if seconds < EARLIEST {
        return Finding::wrong(
            "clock",
            format!("{shown}: it was never set"),
            "set the clock (NTP): expiry, quiet hours and signatures depend on it",
        );
    }
    // Both clocks over the same short work: a wall clock that is being pulled hard shows here.
    let mut work = 0_u64;
    while mono.elapsed() < Duration::from_millis(50) {
        work = work.wrapping_add(1);
    }
    let (wall_ms, mono_ms) = (wall.elapsed().map_or(0, |time| time.as_millis()), mono.elapsed().as_millis());
    if wall_ms.abs_diff(mono_ms) > 20 {
        return Finding::wrong(
            "clock",
            format!("{shown}: it runs {wall_ms} ms while {mono_ms} ms pass"),
            "something sets the clock in jumps: let one NTP client slew it",
        );
    }
    Finding::well("clock", shown)
}

fn time_zones() -> Finding {
    match jiff::tz::TimeZone::get("America/Chicago") {
        Ok(_) => Finding::well("time zones", "built in"),
        Err(error) => Finding::wrong(
            "time zones",
            error.to_string(),
            "this binary was built without time zone data: use a released one",
        ),
    }
}

fn files() -> Finding {
    let limit = getrlimit(Resource::Nofile).maximum;
    match limit {
        Some(limit) if limit < FEW_FILES => Finding::better(
            "open files",
            format!("at most {limit}"),
            format!("allow at least {FEW_FILES} (ulimit -n, or LimitNOFILE= in the unit)"),
        ),
        Some(limit) => Finding::well("open files", format!("up to {limit}")),
        None => Finding::well("open files", "not limited"),
    }
}

fn directory(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    if !path.exists() {
        let parent = path.ancestors().skip(1).find(|parent| parent.as_os_str().is_empty() || parent.exists());
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let seen = format!("{shown} is not there yet: the first start makes it");
        return vec![Finding::well("data directory", seen), room(parent)];
    }
    match sync_time(path) {
        Err(error) => vec![Finding::wrong(
            "data directory",
            format!("{shown}: {error}"),
            "make it a directory that this user may write to (--data-dir)",
        )],
        Ok(time) => {
            let sync = if time > SLOW_SYNC {
                Finding::better(
                    "disk",
                    format!("a commit takes about {time:.1?}"),
                    "use a faster disk: a local SSD needs less than 5 ms",
                )
            } else {
                Finding::well("disk", format!("a commit takes about {time:.1?}"))
            };
            vec![Finding::well("data directory", format!("{shown} can be written to")), sync, room(path)]
        }
    }
}

/// How long the disk needs to make a few bytes durable.
#[expect(clippy::disallowed_methods, reason = "a disk is measured by the real clock")]
fn sync_time(path: &Path) -> std::io::Result<Duration> {
    let probe = path.join(".doctor");
    let mut file = File::create(&probe)?;
    let mut times = Vec::with_capacity(SYNCS);
    let measured: std::io::Result<()> = (0..SYNCS).try_for_each(|_| {
        let began = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        times.push(began.elapsed());
        Ok(())
    });
    fs::remove_file(&probe)?;
    measured?;
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

fn room(path: &Path) -> Finding {
    match statvfs(path) {
        Err(error) => Finding::better("disk space", error.to_string(), "look at it yourself (df)"),
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let seen = format!("{} MiB free", free >> 20);
            match free {
                free if free < NO_ROOM => {
                    Finding::wrong("disk space", seen, "free some space, or shorten the retention")
                }
                free if free < LITTLE_ROOM => {
                    Finding::better("disk space", seen, "a busy day needs more: give it a few GiB")
                }
                _ => Finding::well("disk space", seen),
            }
        }
    }
}

/// Asks the database what a server would ask it, and changes nothing.
fn database(url: &str) -> Vec<Finding> {
    let found = match postgres::inspect(url) {
        Ok(found) => found,
        Err(error) => {
            let mend = "correct --database-url, or start the database and let this machine in (pg_hba.conf)";
            return vec![Finding::wrong("database", error.to_string(), mend)];
        }
    };
    let seen = format!("PostgreSQL {}, a question takes about {:.1?}", found.version, found.round_trip);
    let mut findings = vec![if found.round_trip > FAR_DATABASE {
        Finding::better("database", seen, "each commit needs two of them: run both in the same place")
    } else {
        Finding::well("database", seen)
    }];
    let mend = "correct it in postgresql.conf, unless losing events is acceptable";
    findings.extend(found.risks.iter().map(|risk| Finding::better("durability", *risk, mend)));
    findings.push(match found.schema {
        (None, _) => Finding::well("store", "none yet: the first start makes it"),
        (Some(there), known) if there > known => Finding::wrong(
            "store",
            format!("schema {there}, this binary knows {known}"),
            "use the newer binary that made it",
        ),
        (Some(there), known) if there < known => {
            Finding::well("store", format!("schema {there}: the next start brings it to {known}"))
        }
        (Some(there), _) => Finding::well("store", format!("schema {there}")),
    });
    findings
}

/// Reads the version out of the file, without opening the store: a server may be using it.
fn schema(data_dir: &Path) -> Finding {
    let found = fs::read_dir(data_dir).ok().and_then(|entries| {
        let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files
            .find(|path| path.extension().is_some_and(|extension| extension == "db" || extension == "sqlite"))
    });
    let Some(path) = found else { return Finding::well("store", "none yet: the first start makes it") };
    let read = || -> std::io::Result<u32> {
        let mut file = File::open(&path)?;
        let mut bytes = [0; 4];
        file.seek(SeekFrom::Start(SCHEMA_OFFSET))?;
        file.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    };
    match read() {
        Ok(version) => Finding::well("store", format!("{}, schema {version}", path.display())),
        Err(error) => Finding::wrong(
            "store",
            format!("{}: {error}", path.display()),
            "restore it from a backup, or let this user read it",
        ),
    }
}

fn key(config: &Config) -> Finding {
    if std::env::var_os("TIDEGATE_SECRET_KEY").is_some() {
        return Finding::well("key for secrets", "TIDEGATE_SECRET_KEY is set");
    }
    let path = config.key_file();
    match fs::metadata(&path) {
        Err(_) if config.secret_key_file.is_none() => {
            Finding::well("key for secrets", "none yet: the first start makes it")
        }
        Err(error) => Finding::wrong(
            "key for secrets",
            format!("{}: {error}", path.display()),
            "correct secret_key_file",
        ),
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => Finding::wrong(
            "key for secrets",
            format!("{} can be read by others", path.display()),
            format!("chmod 600 {}", path.display()),
        ),
        Ok(_) => match crate::secrets::Secrets::from_file(&path, false) {
            Ok(secrets) => Finding::well(
                "key for secrets",
                format!("{}, fingerprint {}", path.display(), secrets.fingerprint()),
            ),
            Err(error) => Finding::wrong(
                "key for secrets",
                error.to_string(),
                "restore the key from a backup: without it no secret can be read",
            ),
        },
    }
}
