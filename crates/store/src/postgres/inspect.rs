//! A look at a database from outside, for those who want to know whether a server could use it. It changes nothing.

use std::time::Duration;

use super::address::Address;
use super::link::Link;
use super::transfer::mark;
use super::{migrate, open, shared_work, sql};
use crate::StoreError;
use crate::writer::now;

/// Round trips that are measured: the middle one counts.
const TRIPS: usize = 9;

/// What was found.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Its version, such as 15.
    pub version: i64,
    /// What its settings risk.
    pub risks: Vec<&'static str>,
    /// How long a question takes.
    pub round_trip: Duration,
    /// The version of the schema, if there is one, and the newest that this binary knows.
    pub schema: (Option<i64>, i64),
    /// The fingerprint of the key that all servers seal secrets with, if one has come by.
    pub key_fingerprint: Option<String>,
}

/// Looks at a database. Blocks until that is done.
pub fn inspect(url: &str) -> Result<Inspection, StoreError> {
    let link = Link::new(Address::parse(url)?)?;
    link.connect()?;
    let (version, risks) = open::durability(&link)?;
    let mut trips = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let begun = now();
        link.ask(sql::CLOCK, Vec::new())?;
        trips.push(begun.elapsed());
    }
    trips.sort_unstable();
    let schema = migrate::versions(&link)?;
    let key = if schema.0.is_some() { mark(&link, shared_work::KEY_FINGERPRINT)? } else { None };
    let key_fingerprint = key.as_deref().and_then(shared_work::key_of_mark);
    let round_trip = trips[TRIPS / 2];
    Ok(Inspection { version: version / 10_000, risks, round_trip, schema, key_fingerprint })
}
