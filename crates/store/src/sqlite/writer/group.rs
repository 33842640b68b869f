//! One group: all that waits, in one transaction, and what follows from how that went.

use std::time::Instant;

use rusqlite::TransactionState;
use tokio::sync::oneshot;

use super::work::Done;
use super::{Work, Writer, now};
use crate::StoreError;
use crate::event::{Accepted, Item};
use crate::record::Commit;
use crate::sqlite::failure::Failure;

impl Writer<'_> {
    /// Commits a group and tells everybody. Returns who waits for the store to be closed, if somebody does.
    pub(super) fn commit(&mut self, mut group: Vec<Work>) -> Option<oneshot::Sender<()>> {
        let closing = match group.pop() {
            Some(Work::Close(closed)) => Some(closed),
            last => {
                group.extend(last);
                None
            }
        };
        if !group.is_empty() {
            self.try_commit(group);
        }
        closing
    }

    fn try_commit(&mut self, mut group: Vec<Work>) {
        let begun = now();
        match self.transact(&mut group) {
            Ok(done) => self.tell(group, done, begun),
            Err(failure) => {
                self.roll_back();
                self.after_failure(group, failure);
            }
        }
    }

    fn transact(&mut self, group: &mut [Work]) -> Result<Vec<Done>, Failure> {
        #[cfg(test)]
        self.shared.limit_pages(self.connection)?;
        self.hot.begin.execute(())?;
        let done = group.iter_mut().map(|work| self.apply(work)).collect::<Result<Vec<_>, _>>()?;
        self.file_batch()?;
        self.write_counts()?;
        self.hot.commit.execute(())?;
        Ok(done)
    }

    fn apply(&mut self, work: &mut Work) -> Result<Done, Failure> {
        match work {
            Work::Accept(accepting) => self.accept(accepting).map(Done::Accepted),
            Work::Replays { replays, job, .. } => {
                self.accept_replays(replays, job.as_ref()).map(Done::Replayed)
            }
            Work::Record(record) => self.record(record).map(|()| Done::Nothing),
            Work::Change { change, .. } => self.change(change).map(Done::Changed),
            Work::PutJob { job, .. } => self.put_job(job).map(|()| Done::Nothing),
            Work::Promote { destination, now, .. } => self.promote(*destination, *now).map(Done::Counted),
            Work::Forget { before, limit, .. } => self.forget(*before, *limit).map(Done::Counted),
            Work::Close(_) => Ok(Done::Nothing),
        }
    }

    /// Nothing of the group is left, in the store and in what the writer remembers.
    fn roll_back(&mut self) {
        if !matches!(self.connection.transaction_state(None::<&str>), Ok(TransactionState::None))
            && let Err(error) = self.connection.execute_batch("rollback")
        {
            tracing::debug!(%error, "the transaction had ended by itself");
        }
        self.counts.roll_back();
        self.filing.roll_back();
        self.next_cursor = None;
        self.intern.forget();
    }

    fn after_failure(&mut self, group: Vec<Work>, failure: Failure) {
        match failure {
            Failure::Full => {
                self.shared.set_full(true);
                self.keep_records(group);
            }
            Failure::Refused(_) if group.len() > 1 => {
                group.into_iter().for_each(|work| self.try_commit(vec![work]));
            }
            Failure::Refused(text) => {
                tracing::error!(%text, "the store refused what it was given");
                group.into_iter().for_each(|work| work.fail(&StoreError::Refused(text.clone())));
            }
            Failure::Broken(text) => {
                tracing::error!(%text, "the store is broken: nothing is acknowledged any more");
                self.shared.break_down(&text);
                group.into_iter().for_each(|work| work.fail(&StoreError::Broken(text.clone())));
            }
        }
    }

    /// While there is no room: whoever asks is told so at once, records wait in their order.
    pub(super) fn keep_records(&self, group: Vec<Work>) {
        let (records, others): (Vec<Work>, Vec<Work>) =
            group.into_iter().partition(|work| matches!(work, Work::Record(_)));
        self.shared.work.put_back(records.into_iter());
        others.into_iter().for_each(|work| work.fail(&StoreError::Full));
    }

    /// The commit is durable: the engine hears of it first, then whoever asked.
    fn tell(&mut self, mut group: Vec<Work>, done: Vec<Done>, begun: Instant) {
        self.counts.commit(self.shared);
        self.filing.commit(self.counts.sequence);
        self.forget_cursor = self.next_cursor.take().unwrap_or(self.forget_cursor);
        self.shared.set_full(false);
        let mut commit = Commit { things: group.len(), ..Commit::default() };
        for (work, done) in group.iter_mut().zip(&done) {
            collect(&mut commit, work, done);
        }
        commit.took_micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.log_pages += 8 + 4 * u64::try_from(commit.accepted.len() + commit.recorded.len()).unwrap_or(0);
        self.shared.committed(commit.accepted.len());
        (self.on_commit)(commit);
        for (work, done) in group.into_iter().zip(done) {
            answer(work, done);
        }
    }
}

/// Moves what the engine goes on with out of the group.
fn collect(commit: &mut Commit, work: &mut Work, done: &Done) {
    match (work, done) {
        (Work::Accept(accepting), Done::Accepted(Accepted::Stored(items))) => {
            let events = std::mem::take(&mut accepting.accept.events).into_iter().zip(items);
            commit
                .accepted
                .extend(events.filter_map(|(event, item)| matches!(item, Item::New(_)).then_some(event)));
        }
        (Work::Replays { replays, .. }, Done::Replayed(kept)) => {
            let replays = std::mem::take(replays).into_iter().zip(kept);
            commit.replays.extend(replays.filter_map(|(replay, kept)| kept.then_some(replay)));
        }
        (Work::Record(record), _) => commit.recorded.push(record.ticket),
        _ => {}
    }
}

/// Whoever asked may have gone away: then nobody hears it.
fn answer(work: Work, done: Done) {
    match (work, done) {
        (Work::Accept(accepting), Done::Accepted(accepted)) => drop(accepting.answer.send(Ok(accepted))),
        (Work::Change { answer, .. }, Done::Changed(changed)) => drop(answer.send(Ok(changed))),
        (Work::Replays { answer, .. } | Work::PutJob { answer, .. }, _) => drop(answer.send(Ok(()))),
        (Work::Promote { answer, .. } | Work::Forget { answer, .. }, Done::Counted(count)) => {
            drop(answer.send(Ok(count)));
        }
        _ => {}
    }
}
