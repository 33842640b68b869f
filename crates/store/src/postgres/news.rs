//! What other nodes have for this one: bulletins since the last look, and what they name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_core::slots::{Seat, Slot};
use tokio_postgres::Row;

use super::failure::Failure;
use super::link::{Asked, Link, Param};
use super::shared_work::posted;
use super::sql;
use super::value::{Rows, row, typed};
use crate::cluster::{Brought, Epochs, News, Node, OrderNo, Posted};
use crate::event::Message;
use crate::shared::Reader;
use crate::source::{self, Fault, params};
use crate::{DestinationNo, codec};

/// How long bulletins are kept.
pub(super) const KEPT: Duration = Duration::from_secs(60);
/// After this long without a look some bulletins may be gone.
const LATE: Duration = Duration::from_secs(45);
/// Bulletins that are read at once.
const BULLETINS: i64 = 200;
/// Bytes that are brought at once: others wait for the connection. What is more, lanes find in the store.
const BYTES: i64 = 4 << 20;

/// How far the bulletins of each seat were read.
pub(super) struct Cursors {
    read: BTreeMap<i64, i64>,
    looked_at: Instant,
}

/// A bulletin, as far as it concerns this node.
struct Bulletin {
    seat: i64,
    groups: i64,
    bytes: i64,
    /// Deliveries for slots that this node holds.
    deliveries: Vec<(i64, DestinationNo)>,
    orders: Vec<i64>,
    catalogue: bool,
}

impl Cursors {
    /// Those of all other seats begin with what was committed when this node registered.
    pub(super) fn new(own: Seat, groups: &[(Seat, i64)], now: Instant) -> Self {
        let others = groups.iter().filter(|(seat, _)| *seat != own);
        Self { read: others.map(|(seat, groups)| (i64::from(seat.get()), *groups)).collect(), looked_at: now }
    }

    /// Reads on. What could not be read now is read the next time.
    pub(super) fn read(&mut self, reader: &Reader, node: &Node, now: Instant) -> source::Result<News> {
        let own = node.take_posted();
        let news = self.read_on(reader, &node.epochs(), &own, now);
        if news.is_err() {
            node.posted(&own);
        }
        news
    }

    fn read_on(
        &mut self,
        reader: &Reader,
        epochs: &Epochs,
        own_orders: &[OrderNo],
        now: Instant,
    ) -> source::Result<News> {
        let source::Source::Postgres(link) = &reader.source else { return Ok(News::default()) };
        let found = self.bulletins(link, epochs).map_err(Fault::Postgres)?;
        let taken = &found[..fitting(&found)];
        let missed = now.saturating_duration_since(self.looked_at) > LATE;
        let mut news = News {
            catalogue: missed || taken.iter().any(|bulletin| bulletin.catalogue),
            missed,
            more: codec::length(found.len()) >= BULLETINS || taken.len() < found.len(),
            ..News::default()
        };
        let mut numbers = Vec::new();
        for bulletin in taken {
            match bulletin.bytes <= BYTES {
                true => numbers.extend(bulletin.deliveries.iter().map(|(number, _)| *number)),
                false => news.behind.extend(bulletin.deliveries.iter().map(|(_, destination)| *destination)),
            }
        }
        news.behind.sort_unstable();
        news.behind.dedup();
        news.brought = brought(reader, link, &numbers)?;
        let told = taken.iter().flat_map(|bulletin| bulletin.orders.iter().copied());
        let wanted: Vec<i64> = told.chain(own_orders.iter().map(|order| codec::count(order.0))).collect();
        news.orders = orders(link, &wanted)?;
        news.orders.retain(|order| epochs.of(Slot::of(order.destination.0)).is_some());
        for bulletin in taken {
            self.read.insert(bulletin.seat, bulletin.groups);
        }
        self.looked_at = now;
        Ok(news)
    }

    fn bulletins(&self, link: &Link, epochs: &Epochs) -> Result<Vec<Bulletin>, Failure> {
        let mut from = Rows::of("ii");
        self.read.iter().for_each(|(seat, groups)| from.push(row![*seat, *groups]));
        let values = from.values().into_iter().chain(typed(params![BULLETINS])).collect();
        let found = link.ask(sql::NEWS, values)?.rows;
        Ok(found.iter().map(|row| bulletin(row, epochs)).collect())
    }
}

/// How many of them can be brought at once; the first in any case.
fn fitting(found: &[Bulletin]) -> usize {
    let mut bytes = 0;
    let too_much = found.iter().position(|bulletin| {
        let first = bytes == 0;
        bytes += bulletin.bytes;
        !first && bytes > BYTES
    });
    too_much.unwrap_or(found.len())
}

fn bulletin(row: &Row, epochs: &Epochs) -> Bulletin {
    let (numbers, destinations): (Vec<i64>, Vec<i32>) = (row.get(3), row.get(4));
    let destinations = destinations.into_iter().map(|no| DestinationNo(u32::try_from(no).unwrap_or(0)));
    let own = |destination: &DestinationNo| epochs.of(Slot::of(destination.0)).is_some();
    let deliveries: Vec<_> =
        numbers.into_iter().zip(destinations).filter(|(_, destination)| own(destination)).collect();
    Bulletin {
        seat: i64::from(row.get::<_, i16>(0)),
        groups: row.get(1),
        bytes: if deliveries.is_empty() { 0 } else { row.get(2) },
        deliveries,
        orders: row.get(5),
        catalogue: row.get(6),
    }
}

/// Open deliveries with what they send. One that was ended meanwhile is left out.
fn brought(reader: &Reader, link: &Link, numbers: &[i64]) -> source::Result<Vec<Brought>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let asked = |sql| Asked { sql, values: by_number(numbers) };
    let answers = link.send(&[asked(sql::BROUGHT), asked(sql::BROUGHT_EVENTS)]).map_err(Fault::Postgres)?;
    let [deliveries, events] = &answers[..] else { return Ok(Vec::new()) };
    let mut messages: HashMap<i64, Arc<Message>> = HashMap::new();
    for row in &events.rows {
        messages.insert(row.get(0), Arc::new(reader.message_of(&source::Row::Postgres(row))?));
    }
    let mut brought = Vec::with_capacity(deliveries.rows.len());
    for row in &deliveries.rows {
        if let Some(message) = messages.get(&row.get::<_, i64>(2)) {
            let found = reader.overdue_of(&source::Row::Postgres(row))?;
            let (destination, delivery) = (found.destination, found.delivery);
            brought.push(Brought { destination, delivery, message: Arc::clone(message) });
        }
    }
    Ok(brought)
}

/// Orders that are open.
fn orders(link: &Link, numbers: &[i64]) -> source::Result<Vec<Posted>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let found = link.ask(sql::ORDERS, by_number(numbers)).map_err(Fault::Postgres)?.rows;
    found.iter().map(|row| posted(&source::Row::Postgres(row))).collect()
}

fn by_number(numbers: &[i64]) -> Vec<Param<'static>> {
    let mut wanted = Rows::of("i");
    numbers.iter().for_each(|number| wanted.push(row![*number]));
    wanted.values()
}
