//! The verbs that only look: each is answered from one commit, on a reader's thread.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_core::delivery::{Delivery, OwnTimes};
use tidegate_core::id::{DeliveryId, EventId, ReplayId};
use tidegate_core::policy::Policy;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use crate::Store;
use crate::catalogue::{AuditEntry, Catalogue};
use crate::cluster::OrderNo;
use crate::delivery::{Attempts, Room, StoredAttempt, StoredDelivery};
use crate::event::{Accepted, IdempotencyKey, StoredEvent};
use crate::job::{Job, JobKind};
use crate::lane::{Of, Overdue, StoredLane};
use crate::list::{Counted, DeliveryFilter, EventFilter, Page, PageQuery};
use crate::record::{HoldRow, LogPlace, NoticeRow};
use crate::stats::{Hour, Surveyed};
use crate::{AccountNo, DestinationNo, StoreError, load, postgres};

impl Store {
    /// An event of an account.
    pub async fn event(&self, account: AccountNo, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        self.read(move |reader| reader.event(account, id)).await
    }

    /// What was answered under a key, if it is known at this time: [`Accepted::Again`], or [`Accepted::KeyReused`].
    pub async fn answered(
        &self,
        key: IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Accepted>, StoreError> {
        self.read(move |reader| reader.answered(&key, now)).await
    }

    /// Events of an account, by filter.
    pub async fn events(
        &self,
        page: PageQuery,
        filter: EventFilter,
    ) -> Result<Page<StoredEvent>, StoreError> {
        self.read(move |reader| reader.events(page, &filter)).await
    }

    /// How many events these are; `None`: more than `cap`.
    pub async fn count_events(
        &self,
        account: AccountNo,
        filter: EventFilter,
        cap: u64,
    ) -> Result<Option<u64>, StoreError> {
        let filter = Arc::new(filter);
        count_out(cap, |_, before| {
            let filter = Arc::clone(&filter);
            self.read(move |reader| reader.count_events(account, &filter, before))
        })
        .await
    }

    /// A delivery of an account.
    pub async fn delivery(
        &self,
        account: AccountNo,
        id: DeliveryId,
    ) -> Result<Option<StoredDelivery>, StoreError> {
        self.read(move |reader| reader.delivery(account, id)).await
    }

    /// All deliveries of an event: those that it was accepted with, then its replays.
    pub async fn deliveries_of(&self, event: EventId) -> Result<Vec<StoredDelivery>, StoreError> {
        self.read(move |reader| reader.deliveries_of(event)).await
    }

    /// The number of the newest replay of each of these events to each destination, where there is one. One look for all of
    /// them, so ask for some thousands at a time.
    pub async fn newest_replays(
        &self,
        events: Vec<EventId>,
    ) -> Result<HashMap<(EventId, DestinationNo), Sequence>, StoreError> {
        self.read(move |reader| reader.newest_replays(&events)).await
    }

    /// Which of these deliveries are open. One look for all of them, so ask for some thousands at a time.
    pub async fn open_among(&self, deliveries: Vec<Sequence>) -> Result<HashSet<Sequence>, StoreError> {
        self.read(move |reader| reader.open_among(&deliveries)).await
    }

    /// Deliveries of an account, by filter. At most 2,000 rows are looked at for a page, so it may be short.
    pub async fn deliveries(
        &self,
        page: PageQuery,
        filter: DeliveryFilter,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.read(move |reader| reader.deliveries(page, &filter)).await
    }

    /// How many deliveries these are; `None`: more than `cap`. All that may be meant is looked at, some at a time.
    pub async fn count_deliveries(
        &self,
        account: AccountNo,
        filter: DeliveryFilter,
        cap: u64,
    ) -> Result<Option<u64>, StoreError> {
        let filter = Arc::new(filter);
        count_out(cap, |left, before| {
            let filter = Arc::clone(&filter);
            self.read(move |reader| reader.count_deliveries(account, &filter, left, before))
        })
        .await
    }

    /// The attempts for a delivery, the first one first.
    pub async fn attempts(&self, delivery: DeliveryId) -> Result<Vec<StoredAttempt>, StoreError> {
        self.read(move |reader| reader.attempts(delivery)).await
    }

    /// The attempts for several deliveries, which come in the order of their numbers: in few looks where these follow one
    /// another, as those of an event do.
    pub async fn attempts_of(&self, deliveries: Vec<DeliveryId>, room: Room) -> Result<Attempts, StoreError> {
        self.read(move |reader| reader.attempts_of(&deliveries, room)).await
    }

    /// The attempts for a destination, newest first.
    pub async fn destination_attempts(
        &self,
        destination: DestinationNo,
        before: Option<Sequence>,
        limit: usize,
    ) -> Result<Page<StoredAttempt>, StoreError> {
        self.read(move |reader| reader.destination_attempts(destination, before, limit)).await
    }

    /// How many attempts for a destination there are; more than `cap` are not counted out.
    pub async fn count_destination_attempts(
        &self,
        destination: DestinationNo,
        cap: u64,
    ) -> Result<u64, StoreError> {
        self.read(move |reader| reader.count_destination_attempts(destination, cap)).await
    }

    /// The intervals in which a destination's work waited, as far as they overlap that time; newest first.
    pub async fn holds(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<HoldRow>, StoreError> {
        let found = self.holds_before(destination, from, LogPlace::before(to), limit).await?;
        Ok(found.into_iter().map(|(_, hold)| hold).collect())
    }

    /// The same from a place on, each with its own.
    pub async fn holds_before(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: LogPlace,
        limit: usize,
    ) -> Result<Vec<(LogPlace, HoldRow)>, StoreError> {
        self.read(move |reader| reader.holds(destination, from, to, limit)).await
    }

    /// What people want to know of a destination, newest first.
    pub async fn notices(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<NoticeRow>, StoreError> {
        let found = self.notices_before(destination, from, LogPlace::before(to), limit).await?;
        Ok(found.into_iter().map(|(_, notice)| notice).collect())
    }

    /// The same from a place on, each with its own.
    pub async fn notices_before(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: LogPlace,
        limit: usize,
    ) -> Result<Vec<(LogPlace, NoticeRow)>, StoreError> {
        self.read(move |reader| reader.notices(destination, from, to, limit)).await
    }

    /// The audit log of an account, newest first.
    pub async fn audit_log(
        &self,
        account: AccountNo,
        before: Option<Sequence>,
        limit: usize,
    ) -> Result<Page<(Sequence, AuditEntry)>, StoreError> {
        self.read(move |reader| reader.audit_log(account, before, limit)).await
    }

    /// How many lines that is; more than `cap` are not counted out.
    pub async fn count_audit_log(&self, account: AccountNo, cap: u64) -> Result<u64, StoreError> {
        self.read(move |reader| reader.count_audit_log(account, cap)).await
    }

    /// A job of an account.
    pub async fn job(&self, account: AccountNo, id: ReplayId) -> Result<Option<Job>, StoreError> {
        self.read(move |reader| reader.job(account, id)).await
    }

    /// Jobs of an account, in the order in which they were first stored.
    pub async fn jobs(&self, page: PageQuery, kind: JobKind) -> Result<Page<Job>, StoreError> {
        self.read(move |reader| reader.jobs(page, kind)).await
    }

    /// How many jobs that is; more than `cap` are not counted out.
    pub async fn count_jobs(&self, account: AccountNo, kind: JobKind, cap: u64) -> Result<u64, StoreError> {
        self.read(move |reader| reader.count_jobs(account, kind, cap)).await
    }

    /// Open deliveries whose end has come by `now`, because they are stale or too old: the earliest first. In a cluster, those of
    /// the slots that this node holds.
    pub async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Overdue>, StoreError> {
        self.fetch(move |reader| reader.overdue(now, limit)).await
    }

    /// How many deliveries are open to each of these destinations and not over by `now`: some may be, and not written so yet.
    pub async fn still_open(
        &self,
        destinations: Vec<DestinationNo>,
        now: Timestamp,
    ) -> Result<Vec<u64>, StoreError> {
        self.read(move |reader| reader.still_open(&destinations, now)).await
    }

    /// Open deliveries of a destination that wait for a time of their own after this one, the earliest first.
    pub async fn timed_after(
        &self,
        destination: DestinationNo,
        after: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.read(move |reader| reader.timed_after(destination, after, limit)).await
    }

    /// Lanes as they were last stored, whoever works them. Those that never were are left out.
    pub async fn lanes(&self, destinations: Vec<DestinationNo>) -> Result<Vec<StoredLane>, StoreError> {
        self.read(move |reader| reader.lanes(&destinations)).await
    }

    /// What owners asked for, read anew: another node may have changed it.
    pub async fn catalogue(&self) -> Result<Catalogue, StoreError> {
        self.read(|reader| reader.source.at_once(|| load::catalogue(&reader.source))).await
    }

    /// Whether an order is still to be carried out.
    pub async fn order_is_open(&self, order: OrderNo) -> Result<bool, StoreError> {
        self.read(move |reader| postgres::order_is_open(&reader.source, order)).await
    }

    /// How many deliveries go before `delivery` if it goes at `at`, counted up to `cap`. Those in flight count as if they
    /// waited.
    pub async fn ahead(
        &self,
        destination: DestinationNo,
        delivery: &Delivery,
        policy: &Policy,
        at: Timestamp,
        cap: u64,
    ) -> Result<u64, StoreError> {
        let (delivery, policy) = (delivery.clone(), policy.clone());
        self.read(move |reader| reader.ahead(destination, &delivery, &policy, at, cap)).await
    }

    /// How each of these destinations does, in their order: its oldest open delivery, and what happened from the hour that
    /// holds `from` on. One look for all of them, so ask for some hundreds at a time.
    pub async fn survey(
        &self,
        destinations: Vec<DestinationNo>,
        from: Timestamp,
    ) -> Result<Vec<Surveyed>, StoreError> {
        self.read(move |reader| reader.survey(&destinations, from)).await
    }

    /// When the oldest delivery was accepted that waits for each of these destinations, given what is in flight to it: that
    /// does not wait. Of those for which nothing waits there is none.
    pub async fn oldest_queued(
        &self,
        flights: HashMap<DestinationNo, Vec<Sequence>>,
    ) -> Result<HashMap<DestinationNo, Timestamp>, StoreError> {
        self.read(move |reader| reader.oldest_queued(&flights)).await
    }

    /// How many deliveries of each of these destinations wait for a time of their own, a retry or a `deliver_at`: exact up to
    /// 10,000.
    pub async fn waiting_for_own_time(
        &self,
        destinations: Vec<DestinationNo>,
        now: Timestamp,
    ) -> Result<Vec<OwnTimes>, StoreError> {
        self.read(move |reader| reader.waiting_for_own_time(&destinations, now)).await
    }

    /// The latest time of their own, a retry or a `deliver_at`, that deliveries of a destination wait for.
    pub async fn last_due(&self, destination: DestinationNo) -> Result<Option<Timestamp>, StoreError> {
        self.read(move |reader| reader.last_due(destination)).await
    }

    /// What happened, hour by hour, from the hour that holds `from` on; oldest first. Hours without anything are left out.
    pub async fn hours(&self, of: Of, from: Timestamp) -> Result<Vec<Hour>, StoreError> {
        self.read(move |reader| reader.hours(of, from)).await
    }
}

/// Counts a list one part after the other, each told how many are left until there are too many, and where it begins.
async fn count_out<F>(cap: u64, part: impl Fn(u64, Option<Sequence>) -> F) -> Result<Option<u64>, StoreError>
where
    F: Future<Output = Result<Counted, StoreError>>,
{
    let (mut found, mut before) = (0, None);
    loop {
        let counted = part(cap - found, before).await?;
        found += counted.found;
        if found > cap {
            return Ok(None);
        }
        match counted.next {
            None => return Ok(Some(found)),
            next => before = next,
        }
    }
}
