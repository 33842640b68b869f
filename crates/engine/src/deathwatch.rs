//! What the process was at work on when it died, so that a delivery that kills it does so only a few times.
//!
//! A panic costs an attempt and no more. A stack that overflows, or memory that runs out, costs the process; and as nothing of an
//! attempt is stored before it ends, the next process would begin with the same one, for ever. So a process that follows one
//! that died takes notes beside its store, for its first minutes: what each thread is at work on right now.
//!
//! ```text
//!   death ► notes are taken ► death, noted: apart from others ► death, noted ► death, noted: put aside, a dead letter
//! ```
//!
//! In flight is not at work: most of what is in flight waits for an answer and has nothing to do with a death. Suspects are sent
//! one after the other, so at the next death an innocent one is no longer noted beside the culprit.
//! Notes are not made durable: they have to outlive the process, not the machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_core::id::DeliveryId;

/// Deaths with a delivery at work after which it is put aside.
const DEATHS: u32 = 3;
/// How long notes are taken: what kills a process is due again at once after a start, as nothing of its attempt is stored.
pub(crate) const WATCHED: Duration = Duration::from_mins(10);
/// A suspect that was not at work at this many deaths is none any more.
const ACQUITTED_AFTER: u32 = 3;
/// Between one suspect and the next.
const APART: Duration = Duration::from_secs(1);
/// How many suspects are kept apart. With more, the rest goes as usual: they cannot all wait.
const MOST_APART: usize = 30;
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
    /// The process before this one died, not long ago.
    watches: AtomicBool,
    suspects: Suspects,
}

type Suspects = BTreeMap<DeliveryId, Suspect>;

/// What is known of a delivery that was at work at a death.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Suspect {
    /// At how many deaths it was.
    deaths: u32,
    /// At how many in a row it was not, since.
    others: u32,
}

impl Suspect {
    const fn is_guilty(self) -> bool {
        self.deaths >= DEATHS
    }
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
        let mut suspects = read_suspects(&directory.join(SUSPECTS));
        let noted = read_notes(&notes)?;
        notes.set_len(0)?;
        if died {
            suspects.values_mut().for_each(|suspect| suspect.others += 1);
        }
        for delivery in noted {
            let suspect = suspects.entry(delivery).or_default();
            *suspect = Suspect { deaths: suspect.deaths + 1, others: 0 };
            let deaths = suspect.deaths;
            tracing::warn!(%delivery, deaths, "the last process died while it was at work on this one");
        }
        suspects.retain(|_, suspect| suspect.is_guilty() || suspect.others < ACQUITTED_AFTER);
        write_suspects(directory, &suspects)?;
        let (directory, watches) = (Some(directory.to_owned()), AtomicBool::new(died));
        Ok(Self { directory, notes: Some(notes), watches, suspects })
    }

    /// Whether a delivery is not to be sent any more.
    pub(crate) fn is_put_aside(&self, delivery: DeliveryId) -> bool {
        self.suspects.get(&delivery).is_some_and(|suspect| suspect.is_guilty())
    }

    /// How long a suspect waits before it is worked on, so that none is at work beside another.
    pub(crate) fn apart(&self, delivery: DeliveryId) -> Option<Duration> {
        let rank = self.suspects.keys().position(|suspect| *suspect == delivery)?;
        (rank < MOST_APART).then(|| APART * u32::try_from(rank + 1).unwrap_or(1))
    }

    /// Does some of the work of a delivery, on this thread.
    pub(crate) fn at_work<T>(&self, delivery: DeliveryId, work: impl FnOnce() -> T) -> T {
        match &self.notes {
            Some(notes) if self.watches.load(Relaxed) => {
                note(notes, delivery.to_bits());
                let done = work();
                note(notes, 0);
                done
            }
            _ => work(),
        }
    }

    /// No more notes: whatever ends the process from now on, no delivery does.
    pub(crate) fn rest(&self) {
        self.watches.store(false, Relaxed);
        if let Some(Err(error)) = self.notes.as_ref().map(|notes| notes.set_len(0)) {
            tracing::warn!(%error, "notes of what was worked on cannot be taken back");
        }
    }

    /// The process ends as it should. Only what is to be put aside is remembered: it may not have had its turn.
    pub(crate) fn end(&self) {
        let Some(directory) = &self.directory else { return };
        let mut guilty = self.suspects.clone();
        guilty.retain(|_, suspect| suspect.is_guilty());
        let left = write_suspects(directory, &guilty);
        if let Err(error) = left.and_then(|()| remove(&directory.join(NOTES))) {
            tracing::warn!(%error, "the next start takes this end for a death");
        }
    }
}

/// Writes into this thread's place.
fn note(notes: &File, number: u128) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static PLACE: u64 = NEXT.fetch_add(1, Relaxed) * WIDTH as u64;
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
fn read_suspects(path: &Path) -> Suspects {
    let read = |line: &str| {
        let mut words = line.split(' ');
        let delivery = DeliveryId::parse(words.next()?).ok()?;
        let mut number = || words.next()?.parse().ok();
        Some((delivery, Suspect { deaths: number()?, others: number()? }))
    };
    fs::read_to_string(path).unwrap_or_default().lines().filter_map(read).collect()
}

/// No suspects, no file.
fn write_suspects(directory: &Path, suspects: &Suspects) -> io::Result<()> {
    let path = directory.join(SUSPECTS);
    if suspects.is_empty() {
        return remove(&path);
    }
    let line = |(delivery, suspect): (&DeliveryId, &Suspect)| {
        format!("{delivery} {} {}\n", suspect.deaths, suspect.others)
    };
    let lines: String = suspects.iter().map(line).collect();
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
        if watch.watches.load(Relaxed) {
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
        let watch = Deathwatch::begin(directory);
        assert!(watch.is_put_aside(poison), "it may not have had its turn yet");
        assert!(!watch.watches.load(Relaxed) && watch.suspects.len() == 1);
    }

    #[test]
    fn after_a_clean_end_nothing_is_left_of_the_innocent() {
        let folder = Folder::new("clean");
        let directory = folder.0.as_path();
        dies_at(directory, &[]);
        dies_at(directory, &[DeliveryId::from_bits(7)]);
        Deathwatch::begin(directory).end();
        assert_eq!(directory.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn who_is_not_there_at_further_deaths_is_acquitted() {
        let folder = Folder::new("acquitted");
        let directory = folder.0.as_path();
        let suspect = DeliveryId::from_bits(7);
        dies_at(directory, &[]);
        dies_at(directory, &[suspect]);
        (1..ACQUITTED_AFTER).for_each(|_| dies_at(directory, &[]));
        let watch = Deathwatch::begin(directory);
        assert_eq!(watch.suspects[&suspect], Suspect { deaths: 1, others: ACQUITTED_AFTER - 1 });
        drop(watch);
        assert!(Deathwatch::begin(directory).suspects.is_empty());
    }

    #[test]
    fn suspects_are_worked_on_one_after_the_other() {
        let folder = Folder::new("apart");
        let directory = folder.0.as_path();
        let suspects: Vec<DeliveryId> = (1..=2 + MOST_APART as u128).map(DeliveryId::from_bits).collect();
        dies_at(directory, &[]);
        dies_at(directory, &suspects);
        let watch = Deathwatch::begin(directory);
        let waits: Vec<_> = suspects.iter().map(|suspect| watch.apart(*suspect)).collect();
        assert_eq!(waits[..2], [Some(APART), Some(2 * APART)]);
        assert_eq!(waits[MOST_APART..], [None, None], "so many cannot all wait");
        assert_eq!(watch.apart(DeliveryId::from_bits(99)), None);
    }

    #[test]
    fn who_leaves_knowing_why_blames_nobody() {
        let folder = Folder::new("knowing");
        let directory = folder.0.as_path();
        dies_at(directory, &[]);
        let watch = Deathwatch::begin(directory);
        watch.at_work(DeliveryId::from_bits(7), || watch.rest());
        watch.at_work(DeliveryId::from_bits(8), || {});
        drop(watch);
        assert!(Deathwatch::begin(directory).suspects.is_empty());
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
        assert!(watch.watches.load(Relaxed) && watch.suspects.len() == 1);
        let second = Deathwatch::begin(directory);
        assert!(!second.watches.load(Relaxed) && second.notes.is_none());
        second.end();
        assert!(directory.join(NOTES).exists(), "it is not the second one's");
        assert!(Deathwatch::begin(&directory.join("nowhere")).notes.is_none());
    }
}
