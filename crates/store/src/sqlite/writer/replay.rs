//! Replays: new deliveries of events that are there.

use rusqlite::OptionalExtension;
use tidegate_core::id::EventId;

use super::Writer;
use crate::AccountNo;
use crate::codec;
use crate::counts::Belonging;
use crate::event::NewReplay;
use crate::job::Job;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;

impl Writer<'_> {
    /// Adds replays with the progress of the job that makes them. One whose event is gone by now is left out.
    pub(super) fn accept_replays(
        &mut self,
        replays: &[NewReplay],
        job: Option<&Job>,
    ) -> Result<Vec<bool>, Failure> {
        let mut kept = Vec::with_capacity(replays.len());
        for replay in replays {
            self.shared.saw(replay.delivery.accepted_at);
            let event = self.replayed_event(replay.event)?;
            kept.push(event.is_some());
            if let Some((account, bytes)) = event {
                let type_no = self.intern.event_type(self.connection, &replay.delivery.event_type)?;
                let belonging = Belonging::replayed(replay, account, type_no, bytes);
                self.add_delivery(&replay.delivery, &belonging)?;
            }
        }
        if let Some(job) = job {
            self.put_job(job)?;
        }
        Ok(kept)
    }

    fn replayed_event(&self, event: EventId) -> Result<Option<(AccountNo, usize)>, Failure> {
        let found = self
            .connection
            .prepare_cached(sql::FIND_REPLAYED_EVENT)?
            .query_row([codec::seq(event.sequence())], |row| {
                let bytes = usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
                Ok((AccountNo(row.get(0)?), row.get::<_, i64>(1)?, bytes))
            })
            .optional()?;
        Ok(found
            .filter(|(_, salt, _)| *salt == codec::salt(event))
            .map(|(account, _, bytes)| (account, bytes)))
    }
}
