//! What goes on after its call was answered: replays and cancellations of many deliveries, and what a deleted destination
//! leaves behind.
//!
//! Each job is a task of its own with a budget of its own. Its progress is committed with its work, so it goes on after a
//! restart where it was. A replay never crowds out live traffic: its deliveries are bulk, they come in at a bounded rate,
//! and a bounded number of them is open at a time.

mod clear;
mod pace;
mod replay;
pub(crate) mod request;
mod withdraw;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::id::ReplayId;
use tidegate_store::catalogue::Deleted;
use tidegate_store::job::{Job, JobKind, JobState};
use tokio::sync::watch;

use crate::api::App;
use crate::api::error::ApiError;
pub(crate) use clear::clear;
use request::JobRequest;

/// A store that is full or busy is asked again after so long.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a call that stops a job waits for its last batch.
const LAST_BATCH: Duration = Duration::from_secs(10);

/// The jobs that run in this process.
#[derive(Default)]
pub(crate) struct Jobs {
    running: Mutex<HashMap<ReplayId, watch::Sender<bool>>>,
}

/// What one step of a job led to.
enum Step {
    /// There is more; go on after this long.
    After(Duration),
    /// It has seen everything.
    Done,
}

/// Takes up what the last process left: jobs that were running, and deleted destinations with open deliveries.
pub(crate) fn resume(app: &App, jobs: Vec<Job>, left_over: Vec<Deleted>) {
    for job in jobs {
        start(app, job);
    }
    clear::take_up(app, left_over);
}

/// Takes up the jobs of nodes that are gone, for as long as the server runs.
pub(crate) async fn adopt(app: App) {
    if app.engine.cluster().is_none() {
        return;
    }
    while !*app.leaving.borrow() {
        tokio::time::sleep(AGAIN).await;
        match app.engine.store().adopt_jobs().await {
            Ok(jobs) => jobs.into_iter().for_each(|job| start(&app, job)),
            Err(error) => tracing::debug!(%error, "jobs of other nodes cannot be looked for"),
        }
    }
}

/// Begins, or goes on with, a job that is stored already.
pub(crate) fn start(app: &App, job: Job) {
    let (stop, stopped) = watch::channel(false);
    let id = job.id;
    app.jobs.running().insert(id, stop);
    let app = app.clone();
    tokio::spawn(async move {
        run(&app, job, stopped).await;
        app.jobs.running().remove(&id);
    });
}

/// Stops a job, and waits until it has.
pub(crate) async fn stop(app: &App, id: ReplayId) {
    let Some(stop) = app.jobs.running().get(&id).cloned() else { return };
    // Nobody listens any more: it has just ended.
    let _ended = stop.send(true);
    // The task drops its receiver when it ends.
    let _late = tokio::time::timeout(LAST_BATCH, stop.closed()).await;
}

impl Jobs {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<ReplayId, watch::Sender<bool>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a job to its end, to a person's stop, or to the server's.
async fn run(app: &App, mut job: Job, mut stop: watch::Receiver<bool>) {
    let Some(request) = JobRequest::from_stored(&job.request) else {
        tracing::error!(job = %job.id, "its request cannot be read: it is given up");
        finish(app, &mut job, JobState::Stopped).await;
        return;
    };
    let mut leaving = app.leaving.clone();
    let mut replaying = replay::Replaying::default();
    loop {
        let step = match job.kind {
            JobKind::Replay => replaying.step(app, &mut job, &request).await,
            JobKind::Cancellation => withdraw::step(app, &mut job, &request).await,
        };
        let wait = match step {
            Ok(Step::Done) => {
                finish(app, &mut job, JobState::Done).await;
                return;
            }
            Ok(Step::After(wait)) => wait,
            Err(error) => {
                tracing::warn!(job = %job.id, "a step failed and is tried again: {error:?}");
                AGAIN
            }
        };
        tokio::select! {
            biased;
            () = becomes_true(&mut stop) => {
                finish(app, &mut job, JobState::Stopped).await;
                return;
            }
            // It stays as it is stored: the next start goes on with it.
            () = becomes_true(&mut leaving) => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Writes the end of a job, however long that takes.
async fn finish(app: &App, job: &mut Job, state: JobState) {
    job.state = state;
    job.finished_at = Some(app.engine.now().wall);
    let mut leaving = app.leaving.clone();
    while let Err(error) = app.engine.store().put_job(job.clone()).await.map_err(ApiError::from) {
        tracing::warn!(job = %job.id, "its end could not be written and is tried again: {error:?}");
        tokio::select! {
            () = becomes_true(&mut leaving) => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
    tracing::info!(job = %job.id, done = job.done, skipped = job.skipped, "job ended: {state:?}");
}

/// Waits for a word. Whoever could say it and is gone has said it.
async fn becomes_true(word: &mut watch::Receiver<bool>) {
    drop(word.wait_for(|said| *said).await);
}
