//! Opening: connections, migrations, whether commits are durable, a seat in the cluster, and what the store held.

use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;
use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Timestamp};

use super::address::Address;
use super::cluster::Desk;
use super::failure::Failure;
use super::lanes::{lanes_of_slots, other_counts, own_counts};
use super::link::{Habit, Link};
use super::news::Cursors;
use super::partitions::Partitions;
use super::retention::Retention;
use super::slots::Slots;
use super::value::typed;
use super::{cluster, listen, migrate, retention, shared_work, slots, sql, writer};
use crate::cluster::{Identity, Node};
use crate::open::{Loaded, Opened, Spoken, Threads};
use crate::record::Commit;
use crate::shared::Reader;
use crate::source::{Source, params};
use crate::sql::GET_META;
use crate::writer::now;
use crate::{Store, StoreError, codec};

/// The oldest version that is served.
const OLDEST: i64 = 140_000;

/// How to open a store in PostgreSQL.
pub struct Options {
    /// `postgres://user:password@host/database`, with `sslmode=disable|prefer|require|verify-full` and `sslrootcert`.
    pub url: String,
    /// The same database, reached directly, where `url` leads to a pooler: hints of other nodes are heard on such a connection
    /// only. Without it they are listened for on `url`.
    pub listen_url: Option<String>,
    /// The largest payload that `tidegate.publish` takes.
    pub max_event_bytes: u64,
    /// How this node is called.
    pub identity: Identity,
    /// Connections that read for people, at least one; as many again read for deliveries. One more writes, one is for
    /// retention, and two for the cluster.
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
    /// Opens the store in a database, or makes one there, and becomes a node of its cluster: one without slots, which are to
    /// be claimed ([`Store::cluster`]). Blocks until that is done.
    pub fn connect(options: Options) -> Result<Opened, StoreError> {
        // Connections live on threads of their own: this one may belong to a runtime already.
        let opening = std::thread::Builder::new().name("store-open".to_owned()).spawn(move || open(options));
        let opening = opening.map_err(|error| StoreError::Database(error.to_string()))?;
        let broken = |_| StoreError::Database("opening it ended by a panic".to_owned());
        opening.join().map_err(broken)?
    }
}

fn open(options: Options) -> Result<Opened, StoreError> {
    let Options { url, listen_url, max_event_bytes, identity, readers, partition, on_commit } = options;
    let address = Address::parse(&url)?;
    let link = Link::new(address.clone())?;
    link.connect()?;
    check(&link)?;
    migrate::run(&link)?;
    link.ask(sql::SET_META, typed(params!["max_event_bytes", codec::count(max_event_bytes)]))?;
    let registered = slots::register(&link, &identity)?;
    let source = Source::Postgres(Box::new(link));
    let all: Vec<Slot> = Slot::all().collect();
    let (lanes, mut counts) = (lanes_of_slots(&source, &all)?, own_counts(&source, registered.seat)?);
    counts.sequence = registered.sequence;
    let jobs = shared_work::adopt_jobs(&source, registered.node)?;
    let mut loaded = Loaded::read(&source, LastStop::Clean, (lanes, counts), jobs)?;
    loaded.others = other_counts(&source, registered.seat)?;
    let Source::Postgres(link) = source else { unreachable!("it was put there above") };
    let width = width(&link, partition)?;
    let partitions = Partitions::load(&link, width)?;
    let read = || Link::new(address.clone()).map(Box::new).map(Source::Postgres);
    let readers = (0..readers.max(1)).map(|_| Ok([read()?, read()?]));
    let readers = readers.collect::<Result<Vec<_>, StoreError>>()?;
    let own = Link::new(address.clone())?;
    let forget = move |shared| retention::run(&Retention { link: own, shared, width });
    let own = Link::with(address.clone(), Habit::Fixed, cluster::PATIENCE)?;
    let own = Source::Postgres(Box::new(own));
    let cursors = Cursors::new(registered.seat, &registered.groups, now());
    let speak = move |shared| Desk::new(Reader::new(own, shared), cursors).run();
    let link = Link::of(Habit::Fixed, address.clone())?;
    let weather = address.weather.clone();
    let mut listen_to = listen_url.map_or(Ok(address), |url| Address::parse(&url))?;
    listen_to.weather = weather;
    let listen = move |shared| listen::run(&listen_to, &shared);
    let node = Node::new(registered.node, registered.seat);
    loaded.jobs = node.new_jobs(loaded.jobs);
    let write = move |shared, counts| {
        let (slots, groups) = (Slots::new(&registered, &shared), registered.own_groups());
        writer::run(writer::Start { link, shared, counts, slots, groups, partitions, on_commit });
    };
    loaded.start(Threads {
        readers,
        write: Box::new(write),
        forget: Some(Box::new(forget)),
        node: Some(Spoken { node, speak: Box::new(speak), listen: Box::new(listen) }),
    })
}

/// Numbers in one partition, as the database was made with.
pub(super) fn width(link: &Link, partition: Millis) -> Result<i64, Failure> {
    let asked = codec::seq(Sequence::at(Timestamp::from_millis(partition.get().max(1))));
    link.ask(sql::ADD_META, typed(params!["partition", asked]))?;
    let made = link.look(GET_META.postgres, params!["partition"])?;
    Ok(made.first().map_or(asked, |row| row.get(0)))
}

/// Refuses a server that is too old, and names what a setting risks.
pub(super) fn check(link: &Link) -> Result<(), StoreError> {
    for risk in durability(link)?.1 {
        tracing::warn!(risk, "the database may lose what was acknowledged");
    }
    Ok(())
}

/// The server's version, if it is served, and what its settings risk.
pub(super) fn durability(link: &Link) -> Result<(i64, Vec<&'static str>), StoreError> {
    let answer = link.ask(sql::DURABILITY, Vec::new())?;
    let Some(row) = answer.rows.first() else { return Ok((OLDEST, Vec::new())) };
    let version: i64 = row.get(3);
    if version < OLDEST {
        let text = format!("it is PostgreSQL {}, 14 or later is needed", version / 10_000);
        return Err(StoreError::Database(text));
    }
    Ok((version, risks(&[row.get(0), row.get(1), row.get(2)])))
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
