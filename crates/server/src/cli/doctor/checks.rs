//! The looks that need no running server.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use tidegate_store::sqlite::Pages;
use tidegate_store::{StoreError, postgres, sqlite};

use super::Finding;
use crate::config::{Config, SECRET_KEY};
use crate::secrets::{Secrets, SecretsError};
use crate::serve::sending;

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
/// A clock from here on was set wrongly: no authority of the public web is trusted that long, so no https would work.
const LATEST: u64 = 4_102_444_800; // 2100-01-01

/// What was found, and whether a process has the data directory, where everything is kept there.
pub(super) fn all(config: &Config) -> (Vec<Finding>, Option<bool>) {
    let mut findings = vec![clock(), time_zones(), files()];
    findings.extend(file_length(getrlimit(Resource::Fsize).current));
    findings.extend(sending(config));
    findings.extend(directory(&config.data_dir));
    let (sealed, in_use) = match &config.database_url {
        None => {
            let (finding, sealed, in_use) = store(&config.data_dir);
            findings.push(finding);
            (sealed, in_use)
        }
        Some(url) => {
            let (found, sealed) = database(url.reveal());
            findings.extend(found);
            (sealed, None)
        }
    };
    findings.push(key(config, &sealed));
    (findings, in_use)
}

#[expect(clippy::disallowed_methods, reason = "the clock itself is what is looked at")]
fn clock() -> Finding {
    let (wall, mono) = (SystemTime::now(), Instant::now());
    let shown = match date(wall) {
        Ok(shown) => shown,
        Err(finding) => return finding,
    };
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

/// What a clock shows, if that can be.
fn date(wall: SystemTime) -> Result<String, Finding> {
    let seconds = wall.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let shown = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let shown = shown.map_or_else(|| "out of range".to_owned(), |at| at.to_string());
    let fault = match seconds {
        ..EARLIEST => "it was never set",
        LATEST.. => "it is far ahead",
        _ => return Ok(shown),
    };
    let mend = "set the clock (NTP): expiry, quiet hours, signatures and certificates depend on it";
    Err(Finding::wrong("clock", format!("{shown}: {fault}"), mend))
}

/// A store that cannot grow on is found broken by whoever writes to it.
fn file_length(limit: Option<u64>) -> Option<Finding> {
    let seen = format!("at most {limit} bytes", limit = limit?);
    let mend = "lift the limit (ulimit -f unlimited, or LimitFSIZE=infinity in the unit): a store that meets it stops";
    Some(Finding::better("length of files", seen, mend))
}

/// What every attempt needs, made as a start makes it.
fn sending(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = sending::resolver(config) {
        let mend = "name servers that this machine can ask (--name-servers), or mend /etc/resolv.conf";
        findings.push(Finding::wrong("name servers", format!("{error:#}"), mend));
    }
    match sending::roots(config) {
        Err(error) => {
            let mend = "name a file with certificates in PEM, or none";
            findings.push(Finding::wrong("certificates", format!("{error:#}"), mend));
        }
        Ok(roots) => {
            let seen = format!("{} authorities are trusted", roots.len());
            findings.push(Finding::well("certificates", seen));
        }
    }
    findings
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
        // A link that leads nowhere is there, and nothing can be made in its place.
        let there = |parent: &&Path| parent.as_os_str().is_empty() || parent.symlink_metadata().is_ok();
        let parent = path.ancestors().find(there).filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        return match may_make_in(parent) {
            Ok(()) => {
                let seen = format!("{shown} is not there yet: the first start makes it");
                vec![Finding::well("data directory", seen), room(parent)]
            }
            Err(why) => vec![Finding::wrong(
                "data directory",
                format!("{shown} is not there yet, and cannot be made in {}: {why}", parent.display()),
                "make it, for this user, or give it another place (--data-dir)",
            )],
        };
    }
    match sync_time(path) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            let mend = "free some space: a server that runs answers 503 until then, and goes on by itself";
            vec![Finding::wrong("data directory", format!("{shown}: {error}"), mend), room(path)]
        }
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

/// Whether this user may make something in a directory.
fn may_make_in(directory: &Path) -> Result<(), String> {
    let there = fs::metadata(directory).map_err(|error| error.to_string())?;
    if !there.is_dir() {
        return Err("it is not a directory".to_owned());
    }
    access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| std::io::Error::from(errno).to_string())
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

/// What is sealed with the key for secrets.
enum Sealed {
    /// Nothing yet.
    Nothing,
    /// Something, under keys with these fingerprints: one, if all is well.
    Under(Vec<String>),
    /// The store could not be looked into.
    Unknown,
}

/// Asks the database what a server would ask it, and changes nothing.
fn database(url: &str) -> (Vec<Finding>, Sealed) {
    let found = match postgres::inspect(url) {
        Ok(found) => found,
        Err(error) => {
            let mend = "correct --database-url, or start the database and let this machine in (pg_hba.conf)";
            return (vec![Finding::wrong("database", error.to_string(), mend)], Sealed::Unknown);
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
    (findings, Sealed::under(found.key_fingerprint.into_iter().collect()))
}

/// Looks at the store as a start would, and changes nothing: a server may be using it. Says also what is sealed in it, and
/// whether a process has the directory.
fn store(data_dir: &Path) -> (Finding, Sealed, Option<bool>) {
    let found = match sqlite::inspect(data_dir) {
        Ok(found) => found,
        Err(error) => {
            let mend = match &error {
                StoreError::Newer { .. } => "use the newer binary that made it",
                _ => "no server starts with it as it is: mend what is said here; a start loses nothing",
            };
            return (Finding::wrong("store", error.to_string(), mend), Sealed::Unknown, None);
        }
    };
    let Some(contents) = found.contents else {
        let finding = Finding::well("store", "none yet: the first start makes it");
        return (finding, Sealed::Nothing, Some(found.in_use));
    };
    let looked = match &contents.pages {
        Pages::Unread => "what a start reads is whole",
        Pages::Whole => "every page is whole",
        Pages::Damaged(_) => "damaged where no start reads",
    };
    let seen = match contents.schema {
        (there, known) if there < known => format!("schema {there}: the next start brings it to {known}"),
        (there, _) => format!("schema {there}, {looked}"),
    };
    let keys = |sealed: Vec<Vec<u8>>| {
        Sealed::under(sealed.iter().filter_map(|one| Secrets::fingerprint_of(one)).collect())
    };
    let finding = match &contents.pages {
        Pages::Damaged(what) => Finding::wrong(
            "store",
            format!("{seen}: {what}"),
            "a server starts with it, and fails where it reads that: restore it from a backup, or save what can be \
             read (sqlite3's .recover)",
        ),
        Pages::Unread | Pages::Whole => Finding::well("store", seen),
    };
    (finding, contents.sealed.map_or(Sealed::Unknown, keys), Some(found.in_use))
}

/// The key, and whether it is the one that secrets are sealed with.
fn key(config: &Config, sealed: &Sealed) -> Finding {
    const ABOUT: &str = "key for secrets";
    let path = config.key_file();
    let key = match &config.secret_key {
        Some(text) => Secrets::from_text(text.reveal(), SECRET_KEY).map(|key| (SECRET_KEY.to_owned(), key)),
        None => Secrets::from_file(&path, false).map(|key| (path.display().to_string(), key)),
    };
    let restore =
        "start with the key that they were sealed with; without it none can be read, and no server starts";
    match key {
        Ok((place, key)) => match sealed.other_than(&key) {
            None => Finding::well(ABOUT, format!("{place}, fingerprint {}", key.fingerprint())),
            Some(stored) => {
                let (stored, given) = (stored.to_owned(), key.fingerprint());
                Finding::wrong(
                    ABOUT,
                    format!("{place}: {}", SecretsError::OtherKey { stored, given }),
                    restore,
                )
            }
        },
        Err(SecretsError::Missing(_)) => {
            let gone = format!("{} is not there", path.display());
            match sealed {
                // A directory of its own must be there; the data directory has been looked at.
                Sealed::Nothing if config.secret_key_file.is_some() => match may_make_in(folder_of(&path)) {
                    Ok(()) => Finding::well(ABOUT, format!("{gone}: the first start makes it")),
                    Err(why) => Finding::wrong(
                        ABOUT,
                        format!("{gone}, and cannot be made in {}: {why}", folder_of(&path).display()),
                        "make that directory, for this user, or name another file (--secret-key-file)",
                    ),
                },
                Sealed::Nothing => Finding::well(ABOUT, format!("{gone}: the first start makes it")),
                Sealed::Under(keys) => {
                    let seen = format!("{gone}; secrets in the store are under key {}", keys.join(", "));
                    Finding::wrong(ABOUT, seen, restore)
                }
                Sealed::Unknown => Finding::better(
                    ABOUT,
                    format!("{gone}, and whether the store needs it could not be seen"),
                    "mend what is wrong with the store, and look again",
                ),
            }
        }
        Err(error) => Finding::wrong(ABOUT, error.to_string(), "mend it, or restore the key from a backup"),
    }
}

/// Where a file is.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Sealed {
    fn under(mut keys: Vec<String>) -> Self {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() { Self::Nothing } else { Self::Under(keys) }
    }
    /// The key under which something is sealed that is not `key`.
    fn other_than(&self, key: &Secrets) -> Option<&str> {
        let Self::Under(keys) = self else { return None };
        keys.iter().map(String::as_str).find(|stored| *stored != key.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_the_length_of_files_is_named() {
        assert!(file_length(None).is_none());
        assert!(file_length(Some(700)).is_some_and(|finding| finding.seen.contains("700 bytes")));
    }

    #[test]
    fn a_clock_is_set_to_a_time_in_which_this_could_run() {
        for (seconds, expected) in [(0, false), (1_790_000_000, true), (7_258_118_400, false)] {
            let seen = date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(seen.is_ok(), expected, "{seconds}: {:?}", seen.err().map(|finding| finding.seen));
        }
    }
}
