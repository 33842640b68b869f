//! Deliveries that are read from the store because something is wanted of them.
//!
//! Between the read and the wish such a delivery may be sent and end, and that may be committed; taken as it was read, it would
//! be sent again. So whoever reads says so first, and lanes remember what they settle until the wish has come.

use tokio::sync::{mpsc, oneshot};

use crate::driver::{Arrival, Order};

/// Somebody reads. To be kept from before the read until the wish is handed over.
pub struct Reading(mpsc::UnboundedSender<Arrival>);

impl Reading {
    /// Returns when the driver knows; `None`: it has left.
    pub(crate) async fn begin(inbox: &mpsc::UnboundedSender<Arrival>) -> Option<Self> {
        let (done, known) = oneshot::channel();
        inbox.send(Arrival::Order(Order::Reads(done))).ok()?;
        let reading = Self(inbox.clone());
        known.await.ok().map(|()| reading)
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reading")
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _left = self.0.send(Arrival::Order(Order::HasRead));
    }
}
