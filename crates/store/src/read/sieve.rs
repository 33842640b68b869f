//! What of a filter is asked of each row.

use std::sync::Arc;

use tidegate_core::time::Timestamp;

use crate::codec::{self, time};
use crate::list::{DeliveryFilter, Open, Stage};
use crate::names::find_type;
use crate::shared::Reader;
use crate::source::{Cell, Result, Row};
use crate::{AccountNo, DestinationNo};

/// What of a filter is asked of each row.
pub(super) struct Sieve {
    account: i64,
    type_no: Option<i64>,
    destinations: Option<Vec<i64>>,
    stages: Option<Vec<i64>>,
    open: Option<Open>,
    from: Option<i64>,
    to: Option<i64>,
    ordering_key: Option<Arc<str>>,
}

impl Sieve {
    pub(super) fn passes(&self, row: &Row<'_>) -> Result<bool> {
        let accepted_at: i64 = row.get(9)?;
        let among = |wanted: &Option<Vec<i64>>, column: usize| -> Result<bool> {
            let value: i64 = row.get(column)?;
            Ok(wanted.as_ref().is_none_or(|wanted| wanted.contains(&value)))
        };
        let keyed = match (&self.ordering_key, row.cell(12)?) {
            (None, _) => true,
            (Some(key), Cell::Text(text)) => **key == *text,
            _ => false,
        };
        Ok(keyed
            && row.get::<i64>(3)? == self.account
            && self.type_no.is_none_or(|wanted| matches!(row.get::<i64>(5), Ok(found) if found == wanted))
            && among(&self.destinations, 4)?
            && among(&self.stages, 15)?
            && self.open_passes(row)?
            && self.from.is_none_or(|from| accepted_at >= from)
            && self.to.is_none_or(|to| accepted_at < to))
    }

    fn open_passes(&self, row: &Row<'_>) -> Result<bool> {
        let Some(open) = &self.open else { return Ok(true) };
        if row.get::<i64>(15)? != codec::stage(Stage::Open) {
            return Ok(true);
        }
        let own_time = || row.get::<Option<i64>>(16).map(|at| at.map(time));
        Ok(match open {
            Open::Ready(now) => own_time()?.is_none_or(|at| at <= *now),
            Open::Waiting(now) => own_time()?.is_some_and(|at| at > *now),
            Open::Overdue(now) => {
                let too_old_at = time(row.get(11)?);
                row.get::<Option<i64>>(10)?.map_or(too_old_at, |expiry| time(expiry).min(too_old_at)) <= *now
            }
            Open::To(several) => several.contains(&DestinationNo(row.get(4)?)),
            Open::These(numbers) => numbers.contains(&codec::sequence(row.get(0)?)),
        })
    }
}

impl Reader {
    /// The sieve for a filter; `None` if nothing can pass.
    pub(super) fn sieve(&self, account: AccountNo, filter: &DeliveryFilter) -> Result<Option<Sieve>> {
        let type_no = match &filter.event_type {
            None => None,
            Some(event_type) => match find_type(&self.source, event_type)? {
                None => return Ok(None),
                found => found,
            },
        };
        let destinations = filter.destinations.as_ref();
        Ok(Some(Sieve {
            account: i64::from(account.0),
            type_no,
            destinations: destinations.map(|wanted| wanted.iter().map(|to| i64::from(to.0)).collect()),
            stages: filter.stages.as_ref().map(|wanted| wanted.iter().copied().map(codec::stage).collect()),
            open: filter.open.clone(),
            from: filter.from.map(Timestamp::as_millis),
            to: filter.to.map(Timestamp::as_millis),
            ordering_key: filter.ordering_key.clone(),
        }))
    }
}
