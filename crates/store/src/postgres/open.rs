//! Opening: connections, migrations, whether commits are durable, the slots, and what the store held.

use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::{Millis, Timestamp};

use super::address::Address;
use super::link::Link;
use super::partitions::Partitions;
use super::slots::{Slots, Taken};
use super::value::typed;
use super::{migrate, sql, writer};
use crate::open::{Loaded, Opened};
use crate::record::Commit;
use crate::source::{Source, params};
use crate::{Store, StoreError, codec, load};

/// The oldest version that is served.
const OLDEST: i64 = 140_000;

/// How to open a store in PostgreSQL.
pub struct Options {
    /// `postgres://user:password@host/database`, with `sslmode=disable|prefer|require|verify-full` and `sslrootcert`.
    pub url: String,
    /// Connections that read, at least one. One more writes.
    pub readers: usize,
    /// How much time one partition holds: retention drops whole ones. What the database was made with stays.
    pub partition: Millis,
    /// Called on the writer's thread after each commit, before anybody gets an answer. It must be quick and must not wait
    /// for the store.
    pub on_commit: Box<dyn Fn(Commit) + Send>,
}

impl Options {
    /// A day in each partition: with 30 days of retention, some thirty of them.
    pub const PARTITION: Millis = Millis::days(1);
}

impl Store {
    /// Opens the store in a database, or makes one there, and takes all destinations over from whoever had them. Blocks
    /// until that is done.
    pub fn connect(options: Options) -> Result<Opened, StoreError> {
        // Connections live on threads of their own: this one may belong to a runtime already.
        let opening = std::thread::Builder::new().name("store-open".to_owned()).spawn(move || open(options));
        let opening = opening.map_err(|error| StoreError::Database(error.to_string()))?;
        let broken = |_| StoreError::Database("opening it ended by a panic".to_owned());
        opening.join().map_err(broken)?
    }
}

fn open(options: Options) -> Result<Opened, StoreError> {
    let Options { url, readers, partition, on_commit } = options;
    let address = Address::parse(&url)?;
    let link = Link::new(address.clone())?;
    link.connect()?;
    check(&link)?;
    migrate::run(&link)?;
    let Taken { slots, clean, sequence } = Slots::take_all(&link)?;
    let source = Source::Postgres(Box::new(link));
    let last_stop = if clean { LastStop::Clean } else { LastStop::Crash };
    let loaded = Loaded::read(&source, last_stop, sequence)?;
    let width = width(&source, partition)?;
    let dropped = load::meta(&source, "forget_cursor")?;
    let Source::Postgres(link) = source else { unreachable!("it was put there above") };
    let link = *link;
    let partitions = Partitions::load(&link, width, dropped)?;
    let readers = (0..readers.max(1)).map(|_| Link::new(address.clone()).map(Box::new).map(Source::Postgres));
    let readers = readers.collect::<Result<Vec<_>, _>>()?;
    loaded.start(readers, move |shared, counts| {
        writer::run(writer::Start { link, shared, counts, slots, partitions, on_commit });
    })
}

/// Numbers in one partition, as the database was made with.
fn width(source: &Source, partition: Millis) -> Result<i64, StoreError> {
    let asked = codec::seq(Sequence::at(Timestamp::from_millis(partition.get().max(1))));
    let Source::Postgres(link) = source else { return Ok(asked) };
    let made = link.ask(sql::ADD_META, typed(params!["partition", asked]))?;
    match made.changed {
        0 => Ok(load::meta(source, "partition")?),
        _ => Ok(asked),
    }
}

/// Refuses a server that is too old, and names what a setting risks.
fn check(link: &Link) -> Result<(), StoreError> {
    let answer = link.ask(sql::DURABILITY, Vec::new())?;
    let Some(row) = answer.rows.first() else { return Ok(()) };
    let version: i64 = row.get(3);
    if version < OLDEST {
        let text = format!("it is PostgreSQL {}, 14 or later is needed", version / 10_000);
        return Err(StoreError::Database(text));
    }
    let settings: [String; 3] = [row.get(0), row.get(1), row.get(2)];
    for risk in risks(&settings) {
        tracing::warn!(risk, "the database may lose what was acknowledged");
    }
    Ok(())
}

/// What the settings `fsync`, `full_page_writes` and `synchronous_commit` risk.
fn risks([fsync, pages, commit]: &[String; 3]) -> Vec<&'static str> {
    let mut risks = Vec::new();
    if fsync != "on" {
        risks.push("fsync is off: a crash of the server's machine may corrupt the database");
    }
    if pages != "on" {
        risks.push("full_page_writes is off: a crash of the server's machine may leave torn pages");
    }
    if commit == "off" {
        risks.push(
            "synchronous_commit is off: a crash of the server loses up to 600 ms of acknowledged events",
        );
    } else if commit == "local" {
        risks.push("synchronous_commit is local: a standby that takes over may lack acknowledged events");
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::risks;

    #[test]
    fn each_setting_that_loses_events_is_named() {
        let of =
            |fsync: &str, pages: &str, commit: &str| risks(&[fsync, pages, commit].map(str::to_owned)).len();
        for (settings, expected) in [
            (["on", "on", "on"], 0),
            (["on", "on", "remote_apply"], 0),
            (["off", "on", "on"], 1),
            (["on", "off", "on"], 1),
            (["on", "on", "off"], 1),
            (["on", "on", "local"], 1),
            (["off", "off", "off"], 3),
        ] {
            let [fsync, pages, commit] = settings;
            assert_eq!(of(fsync, pages, commit), expected, "{settings:?}");
        }
    }
}
