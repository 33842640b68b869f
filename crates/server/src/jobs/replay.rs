//! A replay: which deliveries are sent again, how many those are, and one step, which sends a batch of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::sequence::Sequence;
use tidegate_store::AccountNo;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::event::NewReplay;
use tidegate_store::job::{Job, JobKind, Progress};
use tidegate_store::list::{DeliveryFilter, PageQuery};

use super::Step;
use super::pace::{Outstanding, Room, batch, pause};
use super::request::{DEFAULT_PER_MINUTE, JobRequest};
use crate::api::App;
use crate::api::deliveries::replay;
use crate::api::error::ApiError;
use crate::catalogue::DestinationEntry;

/// Deliveries of one look while counting: as many as the store looks at for a page.
const COUNTED_AT_ONCE: usize = 2_000;
/// Between two looks at what an earlier process made: people look through the same readers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Looks of one count: 50,000 deliveries, some tenths of a second.
const PAGES_COUNTED: usize = 25;

/// A replay under way.
pub(super) struct Replaying {
    outstanding: Outstanding,
    /// What an earlier process made of originals before this one is still to be looked for: it counts as open, too.
    recall_before: Option<Sequence>,
}

impl Replaying {
    /// A replay from where its job is.
    pub(super) fn go_on(job: &Job) -> Self {
        let after = |position: Sequence| Sequence::from_stored(position.get() + 1);
        Self { outstanding: Outstanding::default(), recall_before: job.position.map(after) }
    }

    /// The next batch.
    pub(super) async fn step(
        &mut self,
        app: &App,
        job: &mut Job,
        request: &JobRequest,
    ) -> Result<Step, ApiError> {
        let per_minute = request.max_per_minute.unwrap_or(DEFAULT_PER_MINUTE);
        let Ok(filter) = request.within(app, job.account, JobKind::Replay, job.created_at) else {
            // Its destination is gone by now: nothing is left to do.
            return Ok(Step::Done);
        };
        if let Some(before) = self.recall_before {
            self.recall(app, job, filter, before).await?;
            return Ok(Step::After(BETWEEN_LOOKS));
        }
        let room = match self.outstanding.room(app).await? {
            Room::For(room) => room,
            Room::NoneFor(wait) => return Ok(Step::After(wait)),
        };
        let limit = batch(per_minute).min(room);
        let page = PageQuery { account: job.account, before: job.position, limit, oldest_first: true };
        let found = app.engine.store().deliveries(page, filter).await?;
        let new = self.replays(app, request, &found.items).await?;
        // Also where nobody can say whether they came in.
        self.outstanding.add(new.iter().map(|replay| replay.delivery.id.sequence()));
        let made = new.len();
        let mut next = job.clone();
        next.position = found.next.or_else(|| found.items.last().map(|last| last.delivery.id.sequence()));
        next.done += made as u64;
        next.skipped += (found.items.len() - made) as u64;
        if !found.items.is_empty()
            && replay::accept(app, job.account, new, Some(next.clone()), None).await? == Progress::Lost
        {
            return Ok(Step::Lost);
        }
        *job = next;
        match found.next {
            None => Ok(Step::Done),
            Some(_) => Ok(Step::After(pause(made, per_minute))),
        }
    }

    /// Looks for what this job has made already: open replays, younger than the job, of originals that it has passed. One
    /// look for some of these, back from where the job is, until all were seen or no more may be open anyway.
    async fn recall(
        &mut self,
        app: &App,
        job: &Job,
        filter: DeliveryFilter,
        before: Sequence,
    ) -> Result<(), ApiError> {
        let page = PageQuery {
            account: job.account,
            before: Some(before),
            limit: COUNTED_AT_ONCE,
            oldest_first: false,
        };
        let store = app.engine.store();
        let passed = store.deliveries(page, filter).await?;
        let events = passed.items.iter().map(|original| original.event).collect();
        let newest = store.newest_replays(events).await?;
        let made = passed.items.iter().filter_map(|original| {
            let replay = newest.get(&(original.event, original.destination)).copied();
            replay.filter(|replay| *replay >= Sequence::at(job.created_at))
        });
        let made: HashSet<Sequence> = made.collect();
        self.outstanding.add(store.open_among(made.into_iter().collect()).await?);
        self.recall_before = passed.next.filter(|_| !self.outstanding.is_full());
        Ok(())
    }

    /// Those of these that are to be sent again, made anew.
    async fn replays(
        &self,
        app: &App,
        request: &JobRequest,
        originals: &[StoredDelivery],
    ) -> Result<Vec<NewReplay>, ApiError> {
        let terms = request.replay().check()?;
        let now = app.engine.now().wall;
        let wanted = wanted(app, originals).await?;
        let first = app.engine.number(wanted.len().max(1) as u64).get();
        let new = wanted.into_iter().zip(first..).map(|((original, destination), number)| {
            replay::make(app, now, Sequence::from_stored(number), original, &destination, terms)
        });
        Ok(new.collect::<Result<_, _>>()?)
    }
}

/// How many a job with this filter would send again; `None`: too many to look at.
pub(super) async fn count(
    app: &App,
    account: AccountNo,
    filter: &DeliveryFilter,
) -> Result<Option<u64>, ApiError> {
    let (mut found, mut before) = (0, None);
    for _ in 0..PAGES_COUNTED {
        let page = PageQuery { account, before, limit: COUNTED_AT_ONCE, oldest_first: true };
        let page = app.engine.store().deliveries(page, filter.clone()).await?;
        found += wanted(app, &page.items).await?.len() as u64;
        before = page.next;
        if before.is_none() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Which of these are to be sent again, and where: their destination is there, and nothing newer of the same event went there.
/// Only replays are newer than others of their event.
async fn wanted<'a>(
    app: &App,
    originals: &'a [StoredDelivery],
) -> Result<Vec<(&'a StoredDelivery, Arc<DestinationEntry>)>, ApiError> {
    if originals.is_empty() {
        return Ok(Vec::new());
    }
    let events = originals.iter().map(|original| original.event).collect();
    let newest = app.engine.store().newest_replays(events).await?;
    let is_newest = |original: &StoredDelivery| {
        let replay = newest.get(&(original.event, original.destination));
        replay.is_none_or(|replay| *replay <= original.delivery.id.sequence())
    };
    let there = |original: &'a StoredDelivery| {
        app.catalogue.destination(original.destination).map(|destination| (original, destination))
    };
    Ok(originals.iter().filter(|original| is_newest(original)).filter_map(there).collect())
}
