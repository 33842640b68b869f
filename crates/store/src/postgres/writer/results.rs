//! What records insert: attempts, lanes, holds, notices; and the orders that they end. What belongs to a slot of another node is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::Writer;
use super::record::{Outcome, records};
use crate::codec;
use crate::delivery::StoredAttempt;
use crate::postgres::failure::Failure;
use crate::postgres::slots::slot;
use crate::postgres::sql;
use crate::postgres::value::{Rows, row, typed};
use crate::record::Record;
use crate::source::params;
use crate::work::Work;
use crate::{AccountNo, DestinationNo};

/// What is new of a lane.
#[derive(Default)]
pub(super) struct LaneRow<'a> {
    pub(super) saved_at: i64,
    pub(super) in_flight: u32,
    pub(super) state: Option<&'a Vec<u8>>,
    pub(super) timeouts: Option<&'a Vec<u8>>,
}

/// What the records of a group insert.
pub(super) struct Results<'a> {
    pub(super) attempts: Rows<'a>,
    pub(super) holds: Rows<'a>,
    pub(super) notices: Rows<'a>,
    pub(super) orders: Rows<'a>,
    pub(super) lanes: BTreeMap<DestinationNo, LaneRow<'a>>,
}

impl Writer {
    pub(super) fn results<'a>(
        &mut self,
        group: &'a [Work],
        outcome: &Outcome,
        stale: &BTreeSet<u8>,
    ) -> Result<Results<'a>, Failure> {
        let mut results = Results {
            attempts: Rows::of("iiiiiiiiitittb"),
            holds: Rows::of("itii"),
            notices: Rows::of("iitt"),
            orders: Rows::of("i"),
            lanes: BTreeMap::new(),
        };
        for record in records(group) {
            self.shared.saw(record.now);
            self.add_results(record, outcome, stale, &mut results)?;
        }
        Ok(results)
    }

    fn add_results<'a>(
        &mut self,
        record: &'a Record,
        outcome: &Outcome,
        stale: &BTreeSet<u8>,
        results: &mut Results<'a>,
    ) -> Result<(), Failure> {
        let owns = |destination: DestinationNo| !stale.contains(&slot(destination));
        for settled in record.settled.iter() {
            if !owns(settled.destination) || !self.slots.is_current(settled.destination, settled.epoch) {
                self.shared.refused_stale(1);
                continue;
            }
            let seq = codec::seq(settled.delivery.id.sequence());
            if let Some(attempt) = settled.attempt.as_ref().filter(|_| outcome.there.contains(&seq)) {
                add_attempt(&mut results.attempts, attempt)?;
                self.counts.given(codec::seq(attempt.id.sequence()));
                self.counts.attempted(settled.destination, settled.account, &attempt.outcome, record.now);
            }
        }
        for lane in record.lanes.iter().filter(|lane| owns(lane.destination)) {
            if !self.slots.is_current(lane.destination, lane.epoch) {
                continue;
            }
            if let Some(state) = &lane.state {
                let account = match self.counts.account_of(lane.destination) {
                    Some(account) => account,
                    None => self.account_of(lane.destination)?,
                };
                self.counts.lane_state(lane.destination, account, state.clone(), record.now);
            }
            let row = results.lanes.entry(lane.destination).or_default();
            (row.saved_at, row.in_flight) = (record.now.as_millis(), lane.in_flight);
            if let Some(timeouts) = &lane.timeouts {
                row.timeouts = Some(timeouts);
            }
        }
        for hold in record.holds.iter().filter(|hold| owns(hold.destination)) {
            let (since, until) = (hold.since.as_millis(), hold.until.as_millis());
            results.holds.push(row![hold.destination.0, hold.reason.word(), since, until]);
        }
        for notice in record.notices.iter().filter(|notice| owns(notice.destination)) {
            let at = notice.at.as_millis();
            results.notices.push(row![notice.destination.0, at, &notice.kind, &notice.detail]);
        }
        for order in record.orders.iter().filter(|order| owns(order.destination)) {
            if self.slots.is_current(order.destination, order.epoch) {
                results.orders.push(row![codec::count(order.no.0)]);
            }
        }
        Ok(())
    }

    fn account_of(&self, destination: DestinationNo) -> Result<AccountNo, Failure> {
        let found = self.link.ask(sql::ACCOUNT_OF_DESTINATION, typed(params![destination.0]))?;
        let account = found.rows.first().map(|row| row.get::<_, i32>(0));
        let account = account.and_then(|account| u32::try_from(account).ok()).map(AccountNo);
        account.ok_or_else(|| Failure::Refused("what it belongs to is not there".to_owned()))
    }
}

fn add_attempt<'a>(rows: &mut Rows<'a>, attempt: &'a StoredAttempt) -> Result<(), Failure> {
    let answered =
        attempt.error.is_some() || !attempt.response_headers.is_empty() || !attempt.response_body.is_empty();
    let headers = serde_json::to_string(&attempt.response_headers);
    let headers = headers.map_err(|error| Failure::Refused(error.to_string()))?;
    // Text in PostgreSQL has no NUL.
    let error = attempt.error.as_ref().map(|error| error.replace('\0', " "));
    rows.push(row![
        codec::seq(attempt.delivery.sequence()),
        codec::salt(attempt.delivery),
        attempt.number,
        codec::seq(attempt.id.sequence()),
        codec::salt(attempt.id),
        attempt.destination.0,
        attempt.started_at.as_millis(),
        attempt.response_time.get(),
        attempt.timeout.get(),
        attempt.outcome.to_code(),
        codec::probe_column(attempt.probe),
        error,
        answered.then_some(headers),
        answered.then_some(&attempt.response_body),
    ]);
    Ok(())
}
