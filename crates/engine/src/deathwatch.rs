//! What the process was at work on when it died, so that a delivery that kills it does so only a few times.
//!
//! A panic costs an attempt and no more. A stack that overflows, or memory that runs out, costs the process; and as nothing of an
//! attempt is stored before it ends, the next process would begin with the same one, for ever. So a process that follows one
//! that died takes notes beside its store: what each thread is at work on right now.
//!
//! ```text
//!   death ► notes are taken ► death, noted ► death, noted ► death, noted: put aside, a dead letter
//! ```
//!
//! In flight is not at work. Most of what is in flight waits for an answer and has nothing to do with a death; a thread is at
//! work on an attempt for some microseconds, so nobody who kills the process at random meets the same one three times.
//! Notes are not made durable: they have to outlive the process, not the machine.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::id::DeliveryId;

/// Deaths with a delivery at work after which it is put aside.
const DEATHS: u32 = 3;
/// What is being worked on: one number for each thread, zero for none. Its being there says that a process runs, or died.
const NOTES: &str = "at_work";
/// What was worked on at earlier deaths, and at how many of them.
const SUSPECTS: &str = "suspects";
/// Bytes of one number.
const WIDTH: usize = size_of::<u128>();

/// Who watches, and what was found.
#[derive(Debug, Default)]
pub(crate) struct Deathwatch {
    /// Where, unless another process watches there.
    directory: Option<PathBuf>,
    /// Locked as long as this process runs.
    notes: Option<File>,
    /// The process before this one died.
    watches: bool,
    put_aside: HashSet<DeliveryId>,
}

impl Deathwatch {
    /// Reads what the last process left in its directory. Where that cannot be done, nothing is watched: it is a safeguard, and
    /// no reason not to start.
    pub(crate) fn begin(directory: &Path) -> Self {
        Self::try_begin(directory).unwrap_or_else(|error| {
            tracing::warn!(%error, "nobody notes what kills this process, should something do so");
            Self::default()
        })
    }

    fn try_begin(directory: &Path) -> io::Result<Self> {
        let path = directory.join(NOTES);
        let died = path.exists();
        let notes = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        notes.try_lock()?;
        let suspects_path = directory.join(SUSPECTS);
        let mut put_aside = HashSet::new();
        if died {
            let mut suspects = read_suspects(&suspects_path);
            for delivery in read_notes(&notes)? {
                let deaths = suspects.entry(delivery).or_default();
                *deaths += 1;
                tracing::warn!(%delivery, deaths, "the last process died while it was at work on this one");
            }
            write_suspects(&suspects_path, &suspects)?;
            let guilty = suspects.into_iter().filter(|(_, deaths)| *deaths >= DEATHS);
            put_aside.extend(guilty.map(|(delivery, _)| delivery));
        } else {
            remove(&suspects_path)?;
        }
        notes.set_len(0)?;
        Ok(Self { directory: Some(directory.to_owned()), notes: Some(notes), watches: died, put_aside })
    }

    /// Whether a delivery is not to be sent any more.
    pub(crate) fn is_put_aside(&self, delivery: DeliveryId) -> bool {
        !self.put_aside.is_empty() && self.put_aside.contains(&delivery)
    }

    /// Does some of the work of a delivery, on this thread.
    pub(crate) fn at_work<T>(&self, delivery: DeliveryId, work: impl FnOnce() -> T) -> T {
        match &self.notes {
            Some(notes) if self.watches => {
                note(notes, delivery.to_bits());
                let done = work();
                note(notes, 0);
                done
            }
            _ => work(),
        }
    }

    /// The process ends as it should: there is nothing to remember.
    pub(crate) fn end(&self) {
        for name in [SUSPECTS, NOTES] {
            if let Some(Err(error)) = self.directory.as_ref().map(|directory| remove(&directory.join(name))) {
                tracing::warn!(%error, name, "cannot be removed: the next start takes this one for a death");
            }
        }
    }
}

/// Writes into this thread's place.
fn note(notes: &File, number: u128) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static PLACE: u64 = NEXT.fetch_add(1, Ordering::Relaxed) * WIDTH as u64;
    }
    // On a full disk there are no notes.
    let _full = PLACE.with(|place| notes.write_at(&number.to_le_bytes(), *place));
}

fn read_notes(notes: &File) -> io::Result<Vec<DeliveryId>> {
    let mut bytes = vec![0; usize::try_from(notes.metadata()?.len()).unwrap_or(0).min(1 << 20)];
    notes.read_exact_at(&mut bytes, 0)?;
    let numbers = bytes.as_chunks::<WIDTH>().0.iter().map(|number| u128::from_le_bytes(*number));
    Ok(numbers.filter(|number| *number != 0).map(DeliveryId::from_bits).collect())
}

/// A line that cannot be read is nobody's.
fn read_suspects(path: &Path) -> BTreeMap<DeliveryId, u32> {
    let read = |line: &str| {
        let (delivery, deaths) = line.split_once(' ')?;
        Some((DeliveryId::parse(delivery).ok()?, deaths.parse().ok()?))
    };
    fs::read_to_string(path).unwrap_or_default().lines().filter_map(read).collect()
}

fn write_suspects(path: &Path, suspects: &BTreeMap<DeliveryId, u32>) -> io::Result<()> {
    let lines: String = suspects.iter().map(|(delivery, deaths)| format!("{delivery} {deaths}\n")).collect();
    let beside = path.with_extension("new");
    fs::write(&beside, lines)?;
    fs::rename(beside, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tidegate-deathwatch-{name}-{}", std::process::id()));
            let _none = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    /// A process that dies while it is at work on these: it ends without saying so.
    fn dies_at(directory: &Path, deliveries: &[DeliveryId]) {
        let watch = Deathwatch::begin(directory);
        let numbers = deliveries.iter().flat_map(|delivery| delivery.to_bits().to_le_bytes());
        if watch.watches {
            watch.notes.unwrap().write_all_at(&numbers.collect::<Vec<_>>(), 0).unwrap();
        }
    }

    #[test]
    fn what_was_worked_on_at_three_deaths_is_put_aside() {
        let folder = Folder::new("three");
        let directory = folder.0.as_path();
        let (poison, other) = (DeliveryId::from_bits(7), DeliveryId::from_bits(8));
        dies_at(directory, &[]);
        dies_at(directory, &[poison, other]);
        dies_at(directory, &[other]);
        dies_at(directory, &[poison]);
        let watch = Deathwatch::begin(directory);
        assert!(!watch.is_put_aside(poison) && !watch.is_put_aside(other), "two deaths each");
        drop(watch);
        dies_at(directory, &[poison]);
        let watch = Deathwatch::begin(directory);
        assert!(watch.is_put_aside(poison) && !watch.is_put_aside(other));
        watch.end();
        drop(watch);
        assert_eq!(directory.read_dir().unwrap().count(), 0, "nothing is left after a clean end");
        let watch = Deathwatch::begin(directory);
        assert!(!watch.watches && !watch.is_put_aside(poison));
    }

    #[test]
    fn what_is_not_worked_on_any_more_is_not_noted() {
        let folder = Folder::new("done");
        let directory = folder.0.as_path();
        dies_at(directory, &[]);
        let watch = Deathwatch::begin(directory);
        let delivery = DeliveryId::from_bits(7);
        let seen = watch.at_work(delivery, || read_notes(watch.notes.as_ref().unwrap()).unwrap());
        assert_eq!(seen, [delivery]);
        assert_eq!(read_notes(watch.notes.as_ref().unwrap()).unwrap(), []);
    }

    #[test]
    fn a_directory_is_watched_by_one_process_and_rubbish_in_it_is_no_obstacle() {
        let folder = Folder::new("rubbish");
        let directory = folder.0.as_path();
        fs::write(directory.join(NOTES), [1; WIDTH + 3]).unwrap();
        fs::write(directory.join(SUSPECTS), b"\xff\xfe 3\n").unwrap();
        let watch = Deathwatch::begin(directory);
        assert!(watch.watches && watch.put_aside.is_empty());
        let second = Deathwatch::begin(directory);
        assert!(!second.watches && second.notes.is_none());
        second.end();
        assert!(directory.join(NOTES).exists(), "it is not the second one's");
        assert!(!Deathwatch::begin(&directory.join("nowhere")).watches);
    }
}
