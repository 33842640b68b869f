//! Deliveries whose end has come; how long the oldest waits, and how destinations do.

use std::collections::HashMap;

use tidegate_core::delivery::OwnTimes;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use super::refill::Kind;
use crate::codec::{self, length, time};
use crate::counts::hour_of;
use crate::lane::{Of, Overdue};
use crate::shared::Reader;
use crate::source::{Result, Row, Value, params};
use crate::stats::{Surveyed, Tally};
use crate::{DestinationNo, load, sql};

/// What is overdue is counted up to this: it is written as ended within seconds.
const MAX_OVERDUE: usize = 100_000;
/// More that wait for a time of their own are not counted: figures must not keep a reader busy for long.
const MAX_OWN_TIMES: i64 = 10_000;
/// Looks for a moment at which nothing was written, at most.
const LOOKS: usize = 10;

/// What is in flight to some destinations, by their numbers of acceptance.
pub(crate) type Flights = HashMap<DestinationNo, Vec<Sequence>>;

impl Reader {
    /// Open deliveries that are stale or too old; in a cluster, those of the slots that this node holds.
    pub(crate) fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Overdue>> {
        let (now, limit) = (now.as_millis(), length(limit));
        let overdue = |row: &Row<'_>| self.overdue_of(row);
        match &self.shared.node {
            Some(node) => self.all(sql::OVERDUE, params![now, limit, &node.epochs().slots()], overdue),
            None => self.all(sql::OVERDUE, params![now, limit], overdue),
        }
    }

    /// How many deliveries are open to each and not overdue. The counts are kept apart from the rows: both are read until they are
    /// of one moment, where something is overdue at all.
    pub(crate) fn still_open(&self, destinations: &[DestinationNo], now: Timestamp) -> Result<Vec<u64>> {
        let open = || -> Vec<u64> {
            let count = |no: &DestinationNo| self.shared.waiting(Of::Destination(*no)).deliveries;
            destinations.iter().map(count).collect()
        };
        let values = params![now.as_millis(), length(MAX_OVERDUE)];
        let mut counts = open();
        for _ in 0..LOOKS {
            let mut overdue: HashMap<DestinationNo, u64> = HashMap::new();
            for destination in self.all(sql::OVERDUE_NUMBERS, values, |row| row.get(1).map(DestinationNo))? {
                *overdue.entry(destination).or_default() += 1;
            }
            let before = std::mem::replace(&mut counts, open());
            if overdue.is_empty() || before == counts {
                let less = |(no, open): (_, &u64)| open.saturating_sub(overdue.get(no).copied().unwrap_or(0));
                return Ok(destinations.iter().zip(&counts).map(less).collect());
            }
        }
        Ok(counts)
    }

    /// How these destinations do, in their order: when the oldest of their open deliveries was accepted, and what happened
    /// from the hour that holds `from` on. Whatever waits, the cost is that of their priorities, types and hours.
    pub(crate) fn survey(&self, destinations: &[DestinationNo], from: Timestamp) -> Result<Vec<Surveyed>> {
        self.at_once(|| {
            let mut surveyed = self.tallies(destinations, from)?;
            let waits = |no: DestinationNo| self.shared.waiting(Of::Destination(no)).deliveries > 0;
            let (places, waiting): (Vec<usize>, Vec<DestinationNo>) =
                destinations.iter().copied().enumerate().filter(|(_, no)| waits(*no)).unzip();
            for (place, oldest) in places.into_iter().zip(self.oldest_open(&waiting, &Flights::new())?) {
                surveyed[place].oldest_open = oldest;
            }
            Ok(surveyed)
        })
    }

    /// How many deliveries of each destination wait for a time of their own; of all, and of retries, up to a limit.
    pub(crate) fn waiting_for_own_time(
        &self,
        destinations: &[DestinationNo],
        now: Timestamp,
    ) -> Result<Vec<OwnTimes>> {
        let most = Value::from(MAX_OWN_TIMES);
        let count = |row: &Row<'_>| row.get::<i64>(0).map(|count| u64::try_from(count).unwrap_or(0));
        let asked = |no: &DestinationNo| vec![Value::from(no.0), Value::from(now.as_millis()), most.clone()];
        let timed =
            self.each(sql::COUNT_TIMED, &destinations.iter().map(asked).collect::<Vec<_>>(), count)?;
        let asked = |no: &DestinationNo| vec![Value::from(no.0), most.clone()];
        let tried =
            self.each(sql::COUNT_RETRYING, &destinations.iter().map(asked).collect::<Vec<_>>(), count)?;
        let one = |(timed, tried): (Vec<u64>, Vec<u64>)| {
            let (timed, tried) = (timed.into_iter().sum::<u64>(), tried.into_iter().sum::<u64>());
            // Some of those that were tried are due by now, and not marked as that yet.
            let retries = tried.min(timed);
            OwnTimes { scheduled: timed - retries, retries }
        };
        Ok(timed.into_iter().zip(tried).map(one).collect())
    }

    /// The latest time of their own that deliveries of a destination wait for.
    pub(crate) fn last_due(&self, destination: DestinationNo) -> Result<Option<Timestamp>> {
        let asked = [vec![Value::from(destination.0)]];
        let found = self.each(sql::LAST_DUE, &asked, |row| row.get(0).map(time))?;
        Ok(found.into_iter().flatten().next())
    }

    /// When the oldest open delivery of each was accepted, but for those in flight.
    pub(crate) fn oldest_queued(&self, flights: &Flights) -> Result<HashMap<DestinationNo, Timestamp>> {
        let destinations: Vec<DestinationNo> = flights.keys().copied().collect();
        let oldest = self.at_once(|| self.oldest_open(&destinations, flights))?;
        Ok(destinations.into_iter().zip(oldest).filter_map(|(no, at)| Some((no, at?))).collect())
    }

    /// When the oldest open delivery of each was accepted: the first of some priority and type, or one that waits for a retry;
    /// none of `flights`. One that only waits for its `deliver_at` is not old.
    fn oldest_open(
        &self,
        destinations: &[DestinationNo],
        flights: &Flights,
    ) -> Result<Vec<Option<Timestamp>>> {
        let out = |no: &DestinationNo| flights.get(no).map(Vec::as_slice).unwrap_or_default();
        let firsts = |no: &DestinationNo| Value::from(length(1 + out(no).len()));
        let numbered = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get(9).map(time)?));
        let waits = |no: &DestinationNo, rows: Vec<(i64, Timestamp)>| {
            let waits =
                rows.into_iter().filter(|(seq, _)| !out(no).iter().any(|out| codec::seq(*out) == *seq));
            waits.map(|(_, accepted_at)| accepted_at).min()
        };
        let first = |no: &DestinationNo| vec![Value::from(no.0), firsts(no)];
        let asked: Vec<_> = destinations.iter().map(first).collect();
        let retrying = self.each(sql::OLDEST_RETRYING, &asked, numbered)?;
        let mut oldest: Vec<Option<Timestamp>> =
            destinations.iter().zip(retrying).map(|(no, rows)| waits(no, rows)).collect();
        for keyless in [true, false] {
            let (places, asked): (Vec<usize>, Vec<_>) =
                (self.kinds_of_each(destinations, keyless)?.into_iter())
                    .map(|(place, Kind { priority, type_no, .. })| {
                        let after = [priority, type_no, i64::MIN, i64::MIN].map(Value::from);
                        let whose = [Value::from(destinations[place].0), Value::from(keyless)];
                        let most = firsts(&destinations[place]);
                        (place, whose.into_iter().chain(after).chain([most]).collect::<Vec<_>>())
                    })
                    .unzip();
            let ready = self.each(sql::REFILL_READY, &asked, numbered)?;
            for (place, found) in places.into_iter().zip(ready) {
                oldest[place] = oldest[place].into_iter().chain(waits(&destinations[place], found)).min();
            }
        }
        Ok(oldest)
    }

    /// The priorities and types of what is ready, each with its destination's place: all take one step of their skip scans at a
    /// time.
    fn kinds_of_each(&self, destinations: &[DestinationNo], keyless: bool) -> Result<Vec<(usize, Kind)>> {
        let mut kinds = Vec::new();
        let mut going: Vec<(usize, (i64, i64))> =
            (0..destinations.len()).map(|place| (place, (0, 0))).collect();
        while !going.is_empty() {
            let next = |(place, last): &(usize, (i64, i64))| {
                let whose = [Value::from(destinations[*place].0), Value::from(keyless)];
                whose.into_iter().chain([last.0, last.1].map(Value::from)).collect::<Vec<_>>()
            };
            let asked: Vec<_> = going.iter().map(next).collect();
            let found = self.each(sql::REFILL_KINDS, &asked, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let found = going
                .iter()
                .zip(found)
                .filter_map(|((place, _), row)| Some((*place, row.into_iter().next()?)));
            going = found.collect();
            kinds.extend(going.iter().map(|(place, (priority, type_no))| {
                (*place, Kind { keyless, priority: *priority, type_no: *type_no })
            }));
        }
        Ok(kinds)
    }

    fn tallies(&self, destinations: &[DestinationNo], from: Timestamp) -> Result<Vec<Surveyed>> {
        let first = hour_of(from);
        let hour = |row: &Row<'_>| Ok((row.get::<i64>(0)?, load::tally(row, 1)?));
        let over: Vec<_> = destinations
            .iter()
            .map(|no| vec![Value::from(0_i64), Value::from(no.0), Value::from(first)])
            .collect();
        let running: Vec<_> = destinations.iter().map(|no| vec![Value::from(no.0)]).collect();
        let over = self.each(sql::HOURS, &over, hour)?;
        let running = self.each(sql::RUNNING_HOUR_OF_DESTINATION, &running, hour)?;
        let sum = |hours: Vec<(i64, Tally)>| {
            let mut tally = Tally::ZERO;
            let recent = hours.iter().filter(|(hour, _)| *hour >= first);
            recent.for_each(|(_, happened)| tally.add(happened));
            Surveyed { oldest_open: None, tally }
        };
        Ok(over.into_iter().zip(running).map(|(over, running)| sum([over, running].concat())).collect())
    }
}
