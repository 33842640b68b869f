//! How many deliveries go before another one.

use tidegate_core::delivery::{Delivery, Place};
use tidegate_core::order::{Line, Ordering};
use tidegate_core::policy::Policy;
use tidegate_core::time::Timestamp;

use super::refill::Kind;
use crate::DestinationNo;
use crate::codec::{self, count, uncount};
use crate::shared::Reader;
use crate::source::{Result, params};
use crate::sql;

/// Deliveries with a time of their own that are looked at; where there are more, that is many enough.
const LOOKED_AT: u64 = 10_000;
/// After every place.
const LAST: (i64, i64) = (i64::MAX, i64::MAX);

impl Reader {
    /// Deliveries that go before `delivery` if it goes at `at`, up to `cap`: in its line those before it there; else the more
    /// urgent ones, and the equally urgent ones of an earlier place, that are ready or will be by then. Those in flight are
    /// among them.
    pub(crate) fn ahead(
        &self,
        destination: DestinationNo,
        delivery: &Delivery,
        policy: &Policy,
        at: Timestamp,
        cap: u64,
    ) -> Result<u64> {
        self.at_once(|| match policy.ordering.line(delivery) {
            Some(Line::Key(key)) => self.ahead_in_line(destination, delivery, &key, cap),
            whole => {
                let keyless: &[bool] =
                    if policy.ordering == Ordering::Key { &[true] } else { &[true, false] };
                let own = i64::from(delivery.priority.get());
                let mut found = self.due_before(destination, delivery, whole.is_some(), at, cap)?;
                for keyless in keyless {
                    for kind in self.kinds(destination, *keyless)? {
                        let before = match kind.priority {
                            _ if whole.is_some() => place(delivery.place),
                            level if level < own => LAST,
                            level if level == own => place(delivery.place),
                            _ => continue,
                        };
                        if found >= cap {
                            return Ok(cap);
                        }
                        found += self.ready_before(destination, &kind, before, cap - found)?;
                    }
                }
                Ok(found.min(cap))
            }
        })
    }

    /// Those that wait for a time of their own, which comes by `at`. In one line for all, those that were tried have their
    /// turn whenever their retry is.
    fn due_before(
        &self,
        destination: DestinationNo,
        delivery: &Delivery,
        whole: bool,
        at: Timestamp,
        cap: u64,
    ) -> Result<u64> {
        let (occurred_at, seq) = place(delivery.place);
        let (sql, priority) = if whole {
            (sql::COUNT_WAITING_IN_LINE, i64::from(delivery.attempts_made == 0))
        } else {
            (sql::COUNT_DUE_BEFORE, i64::from(delivery.priority.get()))
        };
        let params = params![destination.0, at.as_millis(), priority, occurred_at, seq, count(LOOKED_AT)];
        let counts = self.one(sql, params, |row| Ok((row.get(0).map(uncount)?, row.get(1).map(uncount)?)))?;
        let (found, looked_at) = counts.unwrap_or_default();
        Ok(if looked_at >= LOOKED_AT { cap } else { found })
    }

    fn ready_before(
        &self,
        destination: DestinationNo,
        kind: &Kind,
        (occurred_at, seq): (i64, i64),
        cap: u64,
    ) -> Result<u64> {
        let params =
            params![destination.0, kind.keyless, kind.priority, kind.type_no, occurred_at, seq, count(cap)];
        self.count(sql::COUNT_READY_BEFORE, params)
    }

    /// Those that were tried have their turn before those that were not.
    fn ahead_in_line(
        &self,
        destination: DestinationNo,
        delivery: &Delivery,
        key: &str,
        cap: u64,
    ) -> Result<u64> {
        let own = place(delivery.place);
        // Ready or waiting for a retry, untried or not, and up to where.
        let parts = if delivery.attempts_made == 0 {
            vec![(false, false, LAST), (true, false, LAST), (true, true, own)]
        } else {
            vec![(false, false, own), (true, false, own)]
        };
        let mut found = 0;
        for (ready, untried, (occurred_at, seq)) in parts {
            let params = params![destination.0, key, ready, untried, occurred_at, seq, count(cap - found)];
            found += self.count(sql::COUNT_LINE_BEFORE, params)?;
        }
        Ok(found)
    }
}

fn place(place: Place) -> (i64, i64) {
    let number = tidegate_core::sequence::Sequence::from_stored(place.sequence);
    (place.occurred_at.as_millis(), codec::seq(number))
}
