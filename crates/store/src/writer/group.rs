//! One group: all that waits, in one transaction, and what follows from how that went.

use std::time::Instant;

use tokio::sync::oneshot;

use super::parts::{self, Split};
use super::{Engine, Failure, Writer, now};
use crate::StoreError;
use crate::event::{Accepted, Item};
use crate::job::Progress;
use crate::record::{Commit, Record};
use crate::work::{Done, Forgetting, Work};

impl<E: Engine> Writer<'_, E> {
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
            let kept = self.try_commit(group);
            self.shared.work.put_back(kept.into_iter());
        }
        closing
    }

    /// Commits things or finds out why not. Gives back the records that wait for better times, in their order.
    fn try_commit(&mut self, mut group: Vec<Work>) -> Vec<Work> {
        if let (Some(_), Some(error)) = (&self.unknown, self.shared.waits()) {
            return keep_records(group, &error);
        }
        let begun = now();
        match self.engine.transact(&mut group) {
            Ok(done) => self.tell(group, done, begun),
            Err(Failure::Unknown(text, done)) => {
                let error = StoreError::Unavailable(text);
                self.shared.set_waits(Some(error.clone()));
                self.shared.set_in_doubt(true);
                // Whoever asked is told at once; the group itself is kept until it is known what became of it.
                group.iter_mut().for_each(|work| work.give_up(&error));
                self.unknown = Some((group, done));
            }
            Err(failure) => {
                self.engine.roll_back();
                return self.after_failure(group, failure);
            }
        }
        Vec::new()
    }

    /// On a full disk some ask for nothing before there is room: then nobody else would find out that there is.
    pub(super) fn look_for_room(&mut self) {
        if matches!(self.shared.waits(), Some(StoreError::Full)) && self.engine.writes_empty_groups() {
            self.try_commit(Vec::new());
        }
    }

    /// After trouble: goes on if that is over, first of all with the group whose commit was in doubt.
    pub(super) fn recover(&mut self) {
        match self.engine.recover() {
            Ok(made) => {
                // Whether there is room is known when something is written; a database that answers is there.
                if matches!(self.shared.waits(), Some(StoreError::Unavailable(_))) {
                    self.shared.set_waits(None);
                }
                match self.unknown.take() {
                    Some((group, done)) if made => self.tell(group, done, now()),
                    Some((group, _)) => {
                        self.engine.roll_back();
                        // Whoever asked was told long ago.
                        self.shared.work.put_back(keep_records(group, &StoreError::Closed).into_iter());
                    }
                    None => {}
                }
                self.shared.set_in_doubt(false);
            }
            Err(Failure::Broken(text)) => {
                tracing::error!(%text, "the store is broken: nothing is acknowledged any more");
                self.shared.break_down(&text);
            }
            Err(failure) => self.shared.set_waits(Some(failure.into())),
        }
    }

    /// Gives back the records that wait.
    fn after_failure(&mut self, mut group: Vec<Work>, failure: Failure) -> Vec<Work> {
        match failure {
            Failure::Full | Failure::Unavailable(_) | Failure::Unknown(..) => {
                let error = StoreError::from(failure);
                self.shared.set_waits(Some(error.clone()));
                return keep_records(group, &error);
            }
            Failure::Refused(_) if group.len() > 1 => return self.one_by_one(group),
            Failure::Refused(text) => match group.pop() {
                Some(Work::Record { record, last }) => return self.refused(record, last, &text),
                Some(work) => {
                    tracing::error!(%text, "the store refused what it was given");
                    work.fail(&StoreError::Refused(text));
                }
                None => {}
            },
            Failure::Broken(text) => {
                tracing::error!(%text, "the store is broken: nothing is acknowledged any more");
                self.shared.break_down(&text);
                group.into_iter().for_each(|work| work.fail(&StoreError::Broken(text.clone())));
            }
        }
        Vec::new()
    }

    /// Several that are refused together are tried one by one: when trouble comes up meanwhile, the rest waits as it would have,
    /// behind whatever waits already.
    fn one_by_one(&mut self, group: Vec<Work>) -> Vec<Work> {
        let (mut kept, in_trouble) = (Vec::new(), self.shared.waits().is_some());
        for work in group {
            let stopped = !kept.is_empty() || self.unknown.is_some();
            match self.shared.waits() {
                Some(error) if stopped || !in_trouble => kept.extend(keep_records(vec![work], &error)),
                _ => kept.extend(self.try_commit(vec![work])),
            }
        }
        kept
    }

    /// A record is refused as a whole: what of it can be stored is, and the rest is told of, so that nobody waits for it.
    fn refused(&mut self, record: Record, last: bool, text: &str) -> Vec<Work> {
        match parts::split(record) {
            Split::Parts(first, second) => self.one_by_one(vec![
                Work::Record { record: *first, last: false },
                Work::Record { record: *second, last },
            ]),
            Split::WithoutAttempt(record, attempt) => {
                let delivery = attempt.delivery;
                tracing::error!(%text, %delivery, attempt = %attempt.id, "the store refused an attempt, or its delivery");
                self.try_commit(vec![Work::Record { record: *record, last }])
            }
            Split::Row(ticket, row) => {
                let recorded = if last { vec![ticket] } else { Vec::new() };
                let refused = usize::from(row.is_some());
                if let Some(row) = row {
                    tracing::error!(%text, row, "the store refused a row: it is left out");
                    self.shared.refused_row();
                }
                (self.on_commit)(Commit { recorded, refused, ..Commit::default() });
                Vec::new()
            }
        }
    }

    /// On a full disk something small may find a place where no event does: that is no end of the trouble.
    fn is_room_for_more(&self, group: &[Work]) -> bool {
        !matches!(self.shared.waits(), Some(StoreError::Full))
            || group.iter().any(|work| matches!(work, Work::Accept(_)))
            || self.engine.has_room()
    }

    /// The commit is durable: the engine hears of it first, then whoever asked.
    fn tell(&mut self, mut group: Vec<Work>, done: Vec<Done>, begun: Instant) {
        if self.is_room_for_more(&group) {
            self.shared.set_waits(None);
        }
        let mut commit = Commit { things: group.len(), ..Commit::default() };
        for (work, done) in group.iter_mut().zip(&done) {
            collect(&mut commit, work, done);
        }
        commit.took_micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.engine.committed(&commit);
        self.shared.committed(commit.accepted.len());
        (self.on_commit)(commit);
        for (work, done) in group.into_iter().zip(done) {
            answer(work, done);
        }
    }
}

/// While nothing can be written: whoever asks is told so at once. Gives back the records, which wait.
fn keep_records(group: Vec<Work>, error: &StoreError) -> Vec<Work> {
    let (records, others): (Vec<Work>, Vec<Work>) =
        group.into_iter().partition(|work| matches!(work, Work::Record { .. }));
    others.into_iter().for_each(|work| work.fail(error));
    records
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
        (Work::Record { record, last }, done) => {
            commit.recorded.extend(last.then_some(record.ticket));
            if let Done::Stale(results) = done {
                commit.stale += results;
            }
        }
        _ => {}
    }
}

/// Whoever asked may have gone away: then nobody hears it.
fn answer(work: Work, done: Done) {
    match (work, done) {
        (Work::Accept(accepting), Done::Accepted(accepted)) => drop(accepting.answer.send(Ok(accepted))),
        (Work::Change { answer, .. }, Done::Changed(changed)) => drop(answer.send(Ok(changed))),
        (Work::Replays { answer, .. } | Work::PutJob { answer, .. }, done) => {
            let lost = matches!(done, Done::Lost);
            drop(answer.send(Ok(if lost { Progress::Lost } else { Progress::Written })));
        }
        (Work::PostOrder { answer, .. }, Done::Posted(order)) => drop(answer.send(Ok(order))),
        (Work::Promote { answer, .. } | Work::Forget(Forgetting { answer, .. }), Done::Counted(count)) => {
            drop(answer.send(Ok(count)));
        }
        _ => {}
    }
}
