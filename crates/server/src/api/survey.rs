//! What must be read of each destination and is wanted of all of an account's: its oldest delivery, its success rate.
//!
//! For a few destinations it is read when somebody asks. For many it is read in the background while people look, into a sheet
//! that later calls use: so the order of the destinations may be some seconds old, but what is shown of each never is.
//! Nothing here grows with what waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::time::{Millis, Mono, Timestamp};
use tidegate_engine::View;
use tidegate_store::stats::Surveyed;
use tidegate_store::{AccountNo, DestinationNo};
use tokio::sync::watch;

use super::App;
use super::error::ApiError;

/// The span of rates.
pub(crate) const RATES_OVER: Millis = Millis::hours(24);
/// Up to so many are read whenever somebody asks.
const FEW: usize = 50;
/// Destinations of a sheet that are read in one go: others who look wait no longer than that.
const READ_AT_ONCE: usize = 250;
/// Up to so many lanes of other nodes are read anew whenever somebody looks.
const FEW_LANES: usize = 250;
/// Lanes looked at in one go: the engine stands still meanwhile.
const LANES_AT_ONCE: usize = 500;
/// A sheet is not made anew before this, nor before ten times what it took: looking takes a tenth of one reader at most.
const REST: Millis = Millis::seconds(5);
/// What is older has to be made anew before it is used: nobody had looked for a while.
const OLDEST_SHEET: Millis = Millis::minutes(2);
/// Accounts whose sheets are kept while others are made.
const MAX_ACCOUNTS: usize = 100;

/// The sheets of accounts that people look at.
#[derive(Default)]
pub(crate) struct Surveys(Mutex<HashMap<AccountNo, Arc<Desk>>>);

#[derive(Default)]
struct Desk {
    sheet: watch::Sender<Option<Arc<Sheet>>>,
    /// Somebody is writing the next one.
    busy: AtomicBool,
}

/// What was read of each destination of an account.
#[derive(Debug)]
pub(crate) struct Sheet {
    read_at: Mono,
    good_until: Mono,
    rows: HashMap<DestinationNo, Surveyed>,
}

impl Sheet {
    /// What was read of one.
    pub(crate) fn of(&self, destination: DestinationNo) -> Surveyed {
        self.rows.get(&destination).copied().unwrap_or_default()
    }

    /// Destinations with something waiting, the one with the oldest first. None has got an older delivery since, unless that
    /// had waited for its `deliver_at`.
    pub(crate) fn waiting(&self) -> Vec<(Timestamp, DestinationNo)> {
        let waiting = self.rows.iter().filter_map(|(no, row)| Some((row.oldest_open?, *no)));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable();
        waiting
    }
}

/// The sheet of an account. `None`: there is none yet, and it was not made while the caller had patience.
pub(crate) async fn sheet(
    app: &App,
    account: AccountNo,
    patience: Duration,
) -> Result<Option<Arc<Sheet>>, ApiError> {
    if app.catalogue.destination_count(account) <= FEW {
        return Ok(Some(Arc::new(read(app, account).await?)));
    }
    let desk = app.surveys.desk(account, app.engine.now().mono);
    let now = app.engine.now().mono;
    let latest = desk.sheet.borrow().clone();
    if latest.as_ref().is_none_or(|sheet| now >= sheet.good_until) && !desk.busy.swap(true, AcqRel) {
        tokio::spawn(make(app.clone(), account, Arc::clone(&desk)));
    }
    let recent = move |sheet: &Option<Arc<Sheet>>| {
        sheet.as_ref().is_some_and(|sheet| now.since(sheet.read_at) < OLDEST_SHEET)
    };
    if recent(&latest) {
        return Ok(latest);
    }
    let mut watching = desk.sheet.subscribe();
    let made = tokio::time::timeout(patience, watching.wait_for(recent)).await;
    Ok(made.ok().and_then(Result::ok).and_then(|sheet| sheet.clone()))
}

/// Looks at the lanes of destinations of one account. In a cluster, what other nodes have stored of their lanes is read anew
/// where that is a few, and otherwise as it was when the account's sheet was made.
pub(crate) async fn look_over<R: Send + 'static>(
    app: &App,
    account: AccountNo,
    destinations: Vec<DestinationNo>,
    see: impl Fn(&View<'_>, DestinationNo) -> R + Clone + Send + 'static,
) -> Result<Vec<R>, ApiError> {
    let few = destinations.len() <= FEW_LANES;
    if !few && app.engine.cluster().is_some() {
        sheet(app, account, Duration::ZERO).await?;
    }
    let mut all = Vec::with_capacity(destinations.len());
    for some in destinations.chunks(LANES_AT_ONCE) {
        let (some, see) = (some.to_vec(), see.clone());
        let asked = if few { some.clone() } else { Vec::new() };
        let look = move |view: &View<'_>| some.into_iter().map(|no| see(view, no)).collect::<Vec<R>>();
        all.extend(app.engine.look_at(asked, look).await?);
    }
    Ok(all)
}

impl Surveys {
    fn desk(&self, account: AccountNo, now: Mono) -> Arc<Desk> {
        let mut desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if desks.len() >= MAX_ACCOUNTS && !desks.contains_key(&account) {
            desks.retain(|_, desk| {
                desk.sheet.borrow().as_ref().is_some_and(|sheet| now.since(sheet.read_at) < OLDEST_SHEET)
            });
        }
        Arc::clone(desks.entry(account).or_default())
    }
}

/// Makes the next sheet.
async fn make(app: App, account: AccountNo, desk: Arc<Desk>) {
    match read(&app, account).await {
        Ok(sheet) => drop(desk.sheet.send_replace(Some(Arc::new(sheet)))),
        Err(error) => tracing::warn!(%error, "the destinations of an account could not be looked over"),
    }
    desk.busy.store(false, Release);
}

async fn read(app: &App, account: AccountNo) -> Result<Sheet, ApiError> {
    let now = app.engine.now();
    let all: Vec<_> = app.catalogue.destinations(account).iter().map(|entry| entry.row.no).collect();
    let mut rows = HashMap::with_capacity(all.len());
    for some in all.chunks(READ_AT_ONCE) {
        // What other nodes have stored of their lanes.
        app.engine.look_at(some.to_vec(), |_| ()).await?;
        let read = app.engine.store().survey(some.to_vec(), now.wall - RATES_OVER).await?;
        rows.extend(some.iter().copied().zip(read));
    }
    let end = app.engine.now().mono;
    let rest = end.since(now.mono).scaled(10, 1).max(REST);
    Ok(Sheet { read_at: now.mono, good_until: end + rest, rows })
}
