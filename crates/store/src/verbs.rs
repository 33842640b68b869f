//! The verbs of the handle: each puts work into a queue and waits for the answer of a thread.

mod look;

use std::sync::Arc;

use tidegate_core::id::{AccountId, DeliveryId, ReplayId};
use tidegate_core::time::Timestamp;
use tokio::sync::oneshot;

use crate::Store;
use crate::catalogue::{AuditEntry, Change, Changed, Edit};
use crate::cluster::{Cluster, OrderNo};
use crate::event::{Accept, Accepted, Message, NewReplay};
use crate::job::{Job, Progress};
use crate::lane::{Of, RefillQuery, Refilled, Waiting};
use crate::outbox::{Outboxed, Refused};
use crate::queue::{Queue, Urgency};
use crate::read::Due;
use crate::record::Record;
use crate::shared::{Look, Reader};
use crate::source::Result as Looked;
use crate::stats::StoreStatus;
use crate::work::{Accepting, Answer, Forgetting, PROMOTED, Work};
use crate::{AccountNo, DestinationNo, StoreError, codec, postgres};

/// How often a refill has due deliveries marked ready before it answers anyway: more come due all the time.
const PROMOTIONS: u32 = 3;

impl Store {
    /// Accepts what comes in with one request: all of it or nothing, once per idempotency key and external id.
    pub async fn accept(&self, accept: Accept) -> Result<Accepted, StoreError> {
        self.write(|answer| Work::Accept(Box::new(Accepting { accept, answer }))).await
    }

    /// Accepts replays, together with the progress of the job that makes them. Those whose event is gone by now are left
    /// out: the commit names the others. Whoever has lost the job makes none. The line for the audit log is committed with them.
    pub async fn accept_replays(
        &self,
        replays: Vec<NewReplay>,
        job: Option<Job>,
        audit: Option<AuditEntry>,
    ) -> Result<Progress, StoreError> {
        self.write(|answer| Work::Replays { replays, job, audit, answer }).await
    }

    /// Writes down results. Nobody waits for it: the commit names the record's ticket. While the disk is full it is kept
    /// and tried again, before everything that comes later.
    pub fn record(&self, record: Record) {
        let urgency = if record.awaited { Urgency::AtOnce } else { Urgency::WithOthers };
        if self.inner.shared.work.push_as(Work::Record { record, last: true }, urgency).is_err() {
            tracing::debug!(
                "a record came after the store was closed: its deliveries are open at the next start"
            );
        }
    }

    /// Changes what owners asked for: all edits and the line in the audit log, or nothing. Whoever adds a job works at it.
    pub async fn change(&self, change: Change) -> Result<Changed, StoreError> {
        let new_job = |edit: &Edit| if let Edit::AddJob(job) = edit { Some(job.id) } else { None };
        let jobs: Vec<ReplayId> = change.edits.iter().filter_map(new_job).collect();
        jobs.iter().for_each(|job| self.works_at(*job));
        let changed = self.write(|answer| Work::Change { change, answer }).await;
        if !matches!(changed, Ok(Changed::Done { .. })) {
            // A change whose answer was lost may have been made: then the job is adopted.
            jobs.into_iter().for_each(|job| self.leave_job(job));
        }
        changed
    }

    /// Stores a job, new or with its progress. One that has ended stays as it is.
    pub async fn put_job(&self, job: Job) -> Result<Progress, StoreError> {
        self.works_at(job.id);
        self.write(|answer| Work::PutJob { job, answer }).await
    }

    /// Nobody here works at a job any more. If it is not over it may be adopted, also by this node.
    pub fn leave_job(&self, job: ReplayId) {
        self.inner.shared.node.iter().for_each(|node| node.leaves_job(job));
    }

    fn works_at(&self, job: ReplayId) {
        self.inner.shared.node.iter().for_each(|node| node.works_at(job));
    }

    /// Events in the outbox that this node is to accept, in the order in which they were put there.
    pub async fn outbox(&self, limit: usize) -> Result<Vec<Outboxed>, StoreError> {
        let Some(cluster) = self.cluster() else { return Ok(Vec::new()) };
        let me = cluster.me();
        self.read(move |reader| postgres::outbox(&reader.source, me, limit)).await
    }

    /// The rules refuse an event of the outbox: it is kept, with the reason, and looked at no more.
    pub async fn refuse_outbox(&self, no: u64, error: String) -> Result<(), StoreError> {
        let Some(cluster) = self.cluster() else { return Ok(()) };
        cluster.run(move |reader| postgres::refuse_outbox(&reader.source, no, &error)).await
    }

    /// Events of the outbox that were refused, the newest first.
    pub async fn refused_outbox(&self, limit: usize) -> Result<Vec<Refused>, StoreError> {
        self.read(move |reader| postgres::refused_outbox(&reader.source, limit)).await
    }

    /// How many refused events there are, counted up to `cap`.
    pub async fn count_refused_outbox(&self, cap: u64) -> Result<u64, StoreError> {
        let limit = codec::count(cap.saturating_add(1));
        self.read(move |reader| postgres::count_refused_outbox(&reader.source, limit)).await
    }

    /// Takes over running jobs at which no node works any more.
    pub async fn adopt_jobs(&self) -> Result<Vec<Job>, StoreError> {
        let Some(cluster) = self.cluster() else { return Ok(Vec::new()) };
        let me = cluster.me();
        let jobs = cluster.run(move |reader| postgres::adopt_jobs(&reader.source, me)).await?;
        Ok(self.inner.shared.node.as_ref().map_or_else(Vec::new, |node| node.new_jobs(jobs)))
    }

    /// Tells the node that works a destination what is wanted of its lane. It is open until a record of that node says that it
    /// is carried out ([`Record::orders`]). The line for the audit log is committed with it.
    pub async fn post_order(
        &self,
        destination: DestinationNo,
        body: Vec<u8>,
        audit: Option<AuditEntry>,
    ) -> Result<OrderNo, StoreError> {
        let alone = || StoreError::Refused("there is no other node to give orders to".to_owned());
        self.cluster().ok_or_else(alone)?;
        self.write(|answer| Work::PostOrder { destination, body, audit, answer }).await
    }

    /// Whether all nodes seal secrets with the key that has this fingerprint: the first one that comes decides.
    pub async fn fingerprint(&self, fingerprint: &[u8]) -> Result<bool, StoreError> {
        let Some(cluster) = self.cluster() else { return Ok(true) };
        let text = postgres::key_mark(fingerprint);
        cluster.run(move |reader| postgres::agreed(&reader.source, postgres::KEY_FINGERPRINT, &text)).await
    }

    /// Whether this account is to be the first one: of several nodes that start together on an empty database, one makes it.
    pub async fn is_first_account(&self, id: AccountId) -> Result<bool, StoreError> {
        let Some(cluster) = self.cluster() else { return Ok(true) };
        let text = id.to_string();
        cluster.run(move |reader| postgres::agreed(&reader.source, "first_account", &text)).await
    }

    /// Fills a lane's window. What has come due is marked ready first.
    pub async fn refill(&self, query: RefillQuery) -> Result<Refilled, StoreError> {
        let query = Arc::new(query);
        for round in 0..=PROMOTIONS {
            let asked = Arc::clone(&query);
            match self.fetch(move |reader| reader.refill(&asked, round == PROMOTIONS)).await? {
                Due::Found(refilled) => return Ok(*refilled),
                Due::First => self.promote(query.destination, query.now).await?,
            }
        }
        Ok(Refilled::default())
    }

    async fn promote(&self, destination: DestinationNo, now: Timestamp) -> Result<(), StoreError> {
        while self.write(|answer| Work::Promote { destination, now, answer }).await? >= PROMOTED {}
        Ok(())
    }

    /// What a delivery sends; `None` if there is no such delivery (any more).
    pub async fn message(&self, delivery: DeliveryId) -> Result<Option<Arc<Message>>, StoreError> {
        self.fetch(move |reader| reader.message(delivery)).await
    }

    /// One step of retention: of up to `limit` events those go whose deliveries all became final before then, with
    /// deliveries and attempts; and so do old rows of the logs. Says how many events went.
    pub async fn forget(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let (answer, wait) = oneshot::channel();
        let (shared, asked) = (&self.inner.shared, Forgetting { before, limit, answer });
        let pushed = match &shared.retention {
            Some(queue) => queue.push(asked).is_ok(),
            None => shared.work.push(Work::Forget(asked)).is_ok(),
        };
        match pushed {
            true => wait.await.unwrap_or_else(|_| Err(self.gone())),
            false => Err(self.gone()),
        }
    }

    /// The destinations of an account, deleted ones too, for which something is open.
    pub fn with_open(&self, account: AccountNo) -> Vec<DestinationNo> {
        self.inner.shared.with_open(Some(account))
    }

    /// What waits, as of the last commit.
    pub fn waiting(&self, of: Of) -> Waiting {
        self.inner.shared.waiting(of)
    }

    /// How the store does.
    pub fn status(&self) -> StoreStatus {
        self.inner.shared.status()
    }

    /// Why writes wait, while they do.
    pub fn waits(&self) -> Option<StoreError> {
        self.inner.shared.waits()
    }

    /// Waits until nothing is written any more, because writes wait or the store is broken, and says why.
    pub async fn stalls(&self) -> StoreError {
        self.inner.shared.stalls().await
    }

    /// Waits until the store is broken, and says why: then the process should leave and open it again.
    pub async fn broken(&self) -> String {
        let mut watch = self.inner.shared.watch_broken();
        let broken = watch.wait_for(Option::is_some).await;
        broken.map_or_else(|_| String::new(), |text| text.clone().unwrap_or_default())
    }

    /// This node's part in its cluster; `None` where there is one process only.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.inner.cluster.as_ref()
    }

    /// Writes all that waits, marks the stop as clean and lets the directory go, or leaves the cluster. Later calls get
    /// [`StoreError::Closed`].
    pub async fn close(&self) {
        let (closed, wait) = oneshot::channel();
        if self.inner.shared.work.push(Work::Close(closed)).is_ok() {
            self.inner.shared.work.close();
            let _ = wait.await;
        }
        if let Some(Err(error)) = leave(self.cluster()).await {
            tracing::warn!(%error, "the others do not know that this node has left: they take its slots when its lease ends");
        }
        self.inner.shared.close_rest();
        let inner = Arc::clone(&self.inner);
        // The threads end at once now; waiting for them blocks only for that.
        let _ = tokio::task::spawn_blocking(move || inner.join()).await;
    }

    async fn write<T>(&self, work: impl FnOnce(Answer<T>) -> Work) -> Result<T, StoreError> {
        let (answer, wait) = oneshot::channel();
        self.inner.shared.work.push(work(answer)).map_err(|_| self.gone())?;
        wait.await.unwrap_or_else(|_| Err(StoreError::Broken("its writer ended by a panic".to_owned())))
    }

    /// Reads something that a person waits for.
    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> Looked<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.look(&self.inner.shared.looks, look).await
    }

    /// Reads something that deliveries wait for.
    async fn fetch<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> Looked<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.look(&self.inner.shared.errands, look).await
    }

    async fn look<T: Send + 'static>(
        &self,
        queue: &Queue<Look>,
        look: impl FnOnce(&Reader) -> Looked<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, wait) = oneshot::channel();
        let look = Box::new(move |reader: &Reader| {
            drop(answer.send(look(reader).map_err(|fault| reader.failed(fault))));
        });
        queue.push(look).map_err(|_| self.gone())?;
        wait.await.unwrap_or_else(|_| Err(self.gone()))
    }

    fn gone(&self) -> StoreError {
        match self.inner.shared.is_broken() {
            true => StoreError::Broken(self.inner.shared.what_broke()),
            false => StoreError::Closed,
        }
    }
}

async fn leave(cluster: Option<&Cluster>) -> Option<Result<(), StoreError>> {
    let left = cluster?.leave().await;
    // A second close finds everything done.
    Some(left.or_else(|error| if matches!(error, StoreError::Closed) { Ok(()) } else { Err(error) }))
}
