//! What the API itself changed, for those who watch: the engine tells what attempts lead to, this what people and
//! publishers do.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::id::DeliveryId;
use tidegate_core::time::Timestamp;
use tidegate_engine::metrics::ENDS;
use tidegate_engine::notice::Notice;
use tidegate_store::{AccountNo, DestinationNo};
use tokio::sync::broadcast;

use super::App;

/// Changes that a slow watcher may be behind before it misses some.
const KEPT: usize = 4_096;

/// A change of state as a watcher sees it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// Whose.
    pub(crate) account: AccountNo,
    /// Of which destination; `None`: of the whole account.
    pub(crate) destination: Option<DestinationNo>,
    /// When.
    pub(crate) at: Timestamp,
    /// What: `delivery`, or what happened to the destination or the account.
    pub(crate) kind: &'static str,
    /// Which delivery, if it is about one.
    pub(crate) delivery: Option<DeliveryId>,
    /// Its status.
    pub(crate) status: Option<&'static str>,
    /// A sentence.
    pub(crate) detail: String,
}

impl Told {
    /// Something happened to a destination.
    pub(crate) fn of_destination(
        account: AccountNo,
        destination: DestinationNo,
        at: Timestamp,
        (kind, detail): (&'static str, &str),
    ) -> Self {
        let detail = detail.to_owned();
        Self { account, destination: Some(destination), at, kind, delivery: None, status: None, detail }
    }

    /// Something happened to an account.
    pub(crate) fn of_account(account: AccountNo, at: Timestamp, kind: &'static str, detail: &str) -> Self {
        let detail = detail.to_owned();
        Self { account, destination: None, at, kind, delivery: None, status: None, detail }
    }
}

impl From<&Notice> for Told {
    fn from(notice: &Notice) -> Self {
        Self {
            account: notice.account,
            destination: Some(notice.destination),
            at: notice.at,
            kind: notice.kind,
            delivery: notice.delivery,
            status: notice.status,
            detail: notice.detail.clone(),
        }
    }
}

/// Tells all who watch.
pub(crate) struct Teller(broadcast::Sender<Arc<Told>>);

impl Default for Teller {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl Teller {
    /// Tells them.
    pub(crate) fn tell(&self, told: Told) {
        // Nobody need be watching.
        let _watchers = self.0.send(Arc::new(told));
    }
    /// Hears what is told from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Told>> {
        self.0.subscribe()
    }
}

/// A delivery that was over as soon as it was accepted.
pub(crate) type Over = (DestinationNo, DeliveryId, End);

/// The delivery, if it is over already.
pub(crate) fn over(destination: DestinationNo, delivery: &Delivery) -> Option<Over> {
    match delivery.status {
        Status::Final(end) => Some((destination, delivery.id, end)),
        _ => None,
    }
}

/// Counts and tells of deliveries that ended with their acceptance: no lane ever sees them.
pub(crate) fn tell_over(app: &App, account: AccountNo, all: impl IntoIterator<Item = Over>) {
    let at = app.engine.now().wall;
    for (destination, delivery, end) in all {
        if let Some(place) = ENDS.iter().position(|word| *word == end.word()) {
            app.engine.metrics().finals[place].fetch_add(1, Relaxed);
        }
        app.told.tell(Told {
            account,
            destination: Some(destination),
            at,
            kind: "delivery",
            delivery: Some(delivery),
            status: Some(end.word()),
            detail: end.to_string(),
        });
    }
}
