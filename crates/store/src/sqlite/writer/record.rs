//! Results: attempt, new state, kept counts and the lane's state in one transaction.

use rusqlite::{OptionalExtension, params};
use tidegate_core::delivery::Status;
use tidegate_core::time::Timestamp;

use super::Writer;
use crate::DestinationNo;
use crate::codec;
use crate::delivery::StoredAttempt;
use crate::record::{HoldRow, NoticeRow, Record, Settled};
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;
use crate::work::PROMOTED;

impl Writer<'_> {
    pub(super) fn record(&mut self, record: &Record) -> Result<(), Failure> {
        self.shared.saw(record.now);
        for settled in &record.settled {
            self.settle(settled, record.now)?;
        }
        for lane in &record.lanes {
            if let Some(state) = &lane.state {
                let account = match self.counts.account_of(lane.destination) {
                    Some(account) => account,
                    None => self.account_of(lane.destination)?,
                };
                self.counts.lane_state(lane.destination, account, state.clone(), record.now);
            }
            if let Some(timeouts) = &lane.timeouts {
                self.connection
                    .prepare_cached(sql::SAVE_TIMEOUTS)?
                    .execute(params![lane.destination.0, timeouts])?;
            }
        }
        record.holds.iter().try_for_each(|hold| self.add_hold(hold))?;
        record.notices.iter().try_for_each(|notice| self.add_notice(notice))
    }

    /// One that is final already stays so; an attempt that was made for it is written down all the same.
    fn settle(&mut self, settled: &Settled, now: Timestamp) -> Result<(), Failure> {
        let delivery = &settled.delivery;
        let seq = codec::seq(delivery.id.sequence());
        let changed = match delivery.status {
            Status::Final(end) => {
                let stage = codec::stage_of(&end);
                let found = match settled.event {
                    Some((event, length)) => Some((codec::seq(event.sequence()), codec::length(length))),
                    None => self.find_open(seq)?,
                };
                let changed = self.hot.settle_final.execute(params![
                    seq,
                    delivery.attempts_made,
                    delivery.attempts_used,
                    codec::stage(stage),
                    end.to_code(),
                    now.as_millis()
                ])?;
                match found {
                    Some((event_seq, bytes)) if changed > 0 => {
                        self.counts.ended(settled.destination, settled.account, stage, bytes, now);
                        self.note_to_forget(event_seq, now)?;
                        true
                    }
                    _ => false,
                }
            }
            status => {
                let columns = codec::status_columns(&status);
                let changed = self.hot.settle_open.execute(params![
                    seq,
                    delivery.attempts_made,
                    delivery.attempts_used,
                    columns.retry_at,
                    columns.retry_reason
                ])?;
                changed > 0
            }
        };
        match &settled.attempt {
            Some(attempt) if changed || self.is_there(seq)? => {
                self.add_attempt(attempt, seq)?;
                self.counts.attempted(settled.destination, settled.account, &attempt.outcome, now);
            }
            _ => {}
        }
        Ok(())
    }

    /// Event and length of the payload of one that is open.
    fn find_open(&mut self, seq: i64) -> Result<Option<(i64, i64)>, Failure> {
        Ok(self.hot.find_open.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    fn is_there(&self, seq: i64) -> Result<bool, Failure> {
        Ok(self.connection.prepare_cached(sql::IS_THERE)?.exists([seq])?)
    }

    fn add_attempt(&mut self, attempt: &StoredAttempt, delivery_seq: i64) -> Result<(), Failure> {
        let seq = codec::seq(attempt.id.sequence());
        let answered = attempt.error.is_some()
            || !attempt.response_headers.is_empty()
            || !attempt.response_body.is_empty();
        self.hot.add_attempt.execute(params![
            delivery_seq,
            attempt.number,
            seq,
            codec::salt(attempt.id),
            attempt.destination.0,
            attempt.started_at.as_millis(),
            attempt.response_time.get(),
            attempt.timeout.get(),
            attempt.outcome.to_code(),
            codec::probe_column(attempt.probe),
            answered
        ])?;
        self.file_attempt(attempt.destination, seq)?;
        self.counts.given(seq);
        if answered {
            let headers = serde_json::to_string(&attempt.response_headers)
                .map_err(|error| Failure::Refused(error.to_string()))?;
            self.connection.prepare_cached(sql::ADD_ANSWER)?.execute(params![
                seq,
                attempt.error,
                headers,
                attempt.response_body
            ])?;
        }
        Ok(())
    }

    fn add_hold(&self, hold: &HoldRow) -> Result<(), Failure> {
        self.connection.prepare_cached(sql::ADD_HOLD)?.execute(params![
            hold.destination.0,
            hold.reason.word(),
            hold.since.as_millis(),
            hold.until.as_millis()
        ])?;
        Ok(())
    }

    fn add_notice(&self, notice: &NoticeRow) -> Result<(), Failure> {
        self.connection.prepare_cached(sql::ADD_NOTICE)?.execute(params![
            notice.destination.0,
            notice.at.as_millis(),
            notice.kind,
            notice.detail
        ])?;
        Ok(())
    }

    /// What came due is ready from now on, some at a time; says how many these were.
    pub(super) fn promote(&self, destination: DestinationNo, now: Timestamp) -> Result<u64, Failure> {
        let changed = self.connection.prepare_cached(sql::PROMOTE)?.execute(params![
            destination.0,
            now.as_millis(),
            codec::count(PROMOTED)
        ])?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }
}
