//! One step of a replay: a batch of deliveries is sent again.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_core::id::EventId;
use tidegate_core::sequence::Sequence;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::event::NewReplay;
use tidegate_store::job::{Job, JobKind};
use tidegate_store::list::PageQuery;

use super::Step;
use super::pace::{Outstanding, batch, pause};
use super::request::{DEFAULT_PER_MINUTE, JobRequest};
use crate::api::App;
use crate::api::deliveries::replay;
use crate::api::error::ApiError;

/// With no room for more, the next look comes after this long.
const NO_ROOM: Duration = Duration::from_secs(1);

/// A replay under way.
#[derive(Default)]
pub(super) struct Replaying {
    outstanding: Outstanding,
}

impl Replaying {
    /// The next batch.
    pub(super) async fn step(
        &mut self,
        app: &App,
        job: &mut Job,
        request: &JobRequest,
    ) -> Result<Step, ApiError> {
        let per_minute = request.max_per_minute.unwrap_or(DEFAULT_PER_MINUTE);
        let room = self.outstanding.room(app, job.account).await?;
        if room == 0 {
            return Ok(Step::After(NO_ROOM));
        }
        let Ok(filter) = request.within(app, job.account, JobKind::Replay, job.created_at) else {
            // Its destination is gone by now: nothing is left to do.
            return Ok(Step::Done);
        };
        let limit = batch(per_minute).min(room);
        let page = PageQuery { account: job.account, before: job.position, limit, oldest_first: true };
        let found = app.engine.store().deliveries(page, filter).await?;
        let new = self.replays(app, request, &found.items).await?;
        let ids: Vec<_> = new.iter().map(|replay| replay.delivery.id).collect();
        let made = new.len();
        let mut next = job.clone();
        next.position = found.next.or_else(|| found.items.last().map(|last| last.delivery.id.sequence()));
        next.done += made as u64;
        next.skipped += (found.items.len() - made) as u64;
        if !found.items.is_empty() {
            replay::accept(app, job.account, new, Some(next.clone())).await?;
        }
        *job = next;
        self.outstanding.add(ids);
        match found.next {
            None => Ok(Step::Done),
            Some(_) => Ok(Step::After(pause(made, per_minute))),
        }
    }

    /// What can be sent again of these: its destination is there, and nothing newer of the same event went there.
    async fn replays(
        &self,
        app: &App,
        request: &JobRequest,
        originals: &[StoredDelivery],
    ) -> Result<Vec<NewReplay>, ApiError> {
        let terms = request.replay().check()?;
        let now = app.engine.now().wall;
        let first = app.engine.number(originals.len().max(1) as u64).get();
        let mut newest: HashMap<EventId, HashMap<DestinationNo, u64>> = HashMap::new();
        let mut new = Vec::new();
        for (original, number) in originals.iter().zip(first..) {
            let Some(destination) = app.catalogue.destination(original.destination) else { continue };
            if let std::collections::hash_map::Entry::Vacant(place) = newest.entry(original.event) {
                place.insert(latest(&app.engine.store().deliveries_of(original.event).await?));
            }
            let latest = newest.get(&original.event).and_then(|all| all.get(&original.destination));
            if latest.is_some_and(|latest| *latest > original.delivery.place.sequence) {
                continue;
            }
            new.push(replay::make(app, now, Sequence::from_stored(number), original, &destination, terms)?);
        }
        Ok(new)
    }
}

/// The newest delivery to each destination.
fn latest(deliveries: &[StoredDelivery]) -> HashMap<DestinationNo, u64> {
    let mut latest = HashMap::new();
    for stored in deliveries {
        let known = latest.entry(stored.destination).or_insert(0);
        *known = stored.delivery.place.sequence.max(*known);
    }
    latest
}
