//! What goes on after its call was answered: replays and cancellations of many deliveries, and what a deleted destination
//! leaves behind.
//!
//! Each job is a task of its own with a budget of its own. Its progress is committed with its work, so it goes on after a
//! restart where it was. What the store says of it is what counts: whoever stops a job writes that there, on any node, and
//! its task sees it before its next step. A replay never crowds out live traffic: its deliveries are bulk, they come in at a
//! bounded rate, and a bounded number of them is open at a time.

mod clear;
mod pace;
mod replay;
pub(crate) mod request;
mod withdraw;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::id::ReplayId;
use tidegate_store::catalogue::{AuditEntry, Deleted, Edit};
use tidegate_store::job::{Job, JobKind, JobState, Progress};
use tokio::sync::watch;

use crate::api::App;
use crate::api::error::ApiError;
use crate::catalogue::ChangeError;
pub(crate) use clear::clear;
use replay::Replaying;
use request::JobRequest;

/// A store that is full or busy is asked again after so long.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a call that stops a job waits for the step that it is at.
const LAST_STEP: Duration = Duration::from_secs(10);

/// The right to take a job's next step, or to stop it between two.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The jobs that run in this process.
#[derive(Default)]
pub(crate) struct Jobs {
    running: Mutex<HashMap<ReplayId, Turn>>,
}

/// What one step of a job led to.
enum Step {
    /// There is more; go on after this long.
    After(Duration),
    /// It has seen everything.
    Done,
    /// It goes no further here: it has ended, or another node works at it by now.
    Lost,
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
    let mut leaving = app.leaving.clone();
    loop {
        tokio::select! {
            () = becomes_true(&mut leaving) => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
        match app.engine.store().adopt_jobs().await {
            Ok(jobs) => jobs.into_iter().for_each(|job| start(&app, job)),
            Err(error) => tracing::debug!(%error, "jobs of other nodes cannot be looked for"),
        }
    }
}

/// Stores a new job with its line in the audit log, and starts it.
pub(crate) async fn begin(app: &App, job: Job, audit: AuditEntry) -> Result<(), ChangeError> {
    let turn = app.catalogue.turn().await;
    let app = app.clone();
    turn.carry_out(|turn| async move {
        turn.apply(vec![Edit::AddJob(job.clone())], Some(audit)).await?;
        start(&app, job);
        Ok(())
    })
    .await
}

/// Stops a job, whichever node works at it, with a line in the audit log. One that has just ended is left as it is.
pub(crate) async fn stop(app: &App, id: ReplayId, audit: AuditEntry) -> Result<(), ChangeError> {
    let turn = app.jobs.running().get(&id).cloned();
    let _between_steps = match turn {
        // A step that takes longer is stuck: it finds out when it brings its progress.
        Some(turn) => tokio::time::timeout(LAST_STEP, turn.lock_owned()).await.ok(),
        None => None,
    };
    let edit = Edit::StopJob { job: id, at: app.engine.now().wall };
    match app.catalogue.change(vec![edit], Some(audit)).await {
        Ok(_) | Err(ChangeError::Missing) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Jobs {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<ReplayId, Turn>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins, or goes on with, a job that is stored already.
fn start(app: &App, job: Job) {
    let (id, turn) = (job.id, Turn::default());
    app.jobs.running().insert(id, Arc::clone(&turn));
    let app = app.clone();
    tokio::spawn(async move {
        run(&app, job, &turn).await;
        app.jobs.running().remove(&id);
        app.engine.store().leave_job(id);
    });
}

/// Runs a job to its end, to a person's stop, or to the server's.
async fn run(app: &App, mut job: Job, turn: &Turn) {
    let mut leaving = app.leaving.clone();
    let mut replaying = Replaying::go_on(&job);
    loop {
        let mine = turn.lock().await;
        let step = step(app, &mut job, &mut replaying).await;
        drop(mine);
        let wait = match step {
            Ok(Step::After(wait)) => wait,
            Ok(Step::Done) => {
                tracing::info!(job = %job.id, done = job.done, skipped = job.skipped, "job ended: {:?}", job.state);
                return;
            }
            Ok(Step::Lost) => {
                tracing::info!(job = %job.id, "job goes no further here: it was stopped, or another node works at it");
                return;
            }
            Err(error) => {
                tracing::warn!(job = %job.id, "a step failed and is tried again: {error:?}");
                AGAIN
            }
        };
        tokio::select! {
            biased;
            // It stays as it is stored: the next start goes on with it.
            () = becomes_true(&mut leaving) => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Takes the next step of a job, and writes its end if that was the last.
async fn step(app: &App, job: &mut Job, replaying: &mut Replaying) -> Result<Step, ApiError> {
    let Some(stored) = app.engine.store().job(job.account, job.id).await? else { return Ok(Step::Lost) };
    if stored.state != JobState::Running {
        return Ok(Step::Lost);
    }
    // A step whose answer was lost may have been committed.
    if stored.position > job.position {
        *job = stored;
    }
    let Some(request) = JobRequest::from_stored(&job.request) else {
        tracing::error!(job = %job.id, "its request cannot be read: it is given up");
        return finish(app, job, JobState::Stopped).await;
    };
    let step = match job.kind {
        JobKind::Replay => replaying.step(app, job, &request).await?,
        JobKind::Cancellation => withdraw::step(app, job, &request).await?,
    };
    match step {
        Step::Done => finish(app, job, JobState::Done).await,
        step => Ok(step),
    }
}

/// Writes the end of a job.
async fn finish(app: &App, job: &mut Job, state: JobState) -> Result<Step, ApiError> {
    let ended = Job { state, finished_at: Some(app.engine.now().wall), ..job.clone() };
    if app.engine.store().put_job(ended.clone()).await? == Progress::Lost {
        return Ok(Step::Lost);
    }
    *job = ended;
    Ok(Step::Done)
}

/// Waits for a word. Whoever could say it and is gone has said it.
async fn becomes_true(word: &mut watch::Receiver<bool>) {
    drop(word.wait_for(|said| *said).await);
}
