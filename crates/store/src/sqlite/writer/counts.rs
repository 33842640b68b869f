//! Kept counts, as the group has changed them: one row for each destination and account, in order.

use rusqlite::params;

use super::Writer;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;

impl Writer<'_> {
    pub(super) fn write_counts(&mut self) -> Result<(), Failure> {
        let totals = self.counts.totals();
        for (destination, row, state) in totals.lanes {
            let [a, b, c, d, e, f, g, h] = row.running.tally.columns();
            let (no, account, hour) = (destination.0, row.account.0, row.running.hour);
            self.hot
                .save_lane
                .execute(params![no, account, row.open, row.bytes, hour, a, b, c, d, e, f, g, h, state])?;
        }
        for (account, running) in totals.accounts {
            let mut statement = self.connection.prepare_cached(sql::SAVE_ACCOUNT_TALLY)?;
            let [a, b, c, d, e, f, g, h] = running.tally.columns();
            statement.execute(params![account.0, running.hour, a, b, c, d, e, f, g, h])?;
        }
        for (owner, over) in totals.hours {
            let (owner, no) = owner.columns();
            let mut statement = self.connection.prepare_cached(sql::ADD_HOUR)?;
            let [a, b, c, d, e, f, g, h] = over.tally.columns();
            statement.execute(params![owner, no, over.hour, a, b, c, d, e, f, g, h])?;
        }
        if let Some(sequence) = totals.sequence {
            self.connection.prepare_cached(sql::SET_META)?.execute(("sequence", sequence))?;
        }
        Ok(())
    }
}
