//! Bounds that must hold after every step, whatever the world and its faults do.
//!
//! Each oracle judges from outside: from what publishers were told, what receivers saw and what the store says.
//! [`Oracles`] is all of them at once, for runs with faults.

pub mod agreement;
pub mod concurrency;
pub mod expiry;
pub mod ledger;
pub mod liveness;
pub mod order;
pub mod quiet;
pub mod rate;
pub mod reached;
pub mod shut;
mod violations;

pub use violations::Violations;

use crate::run::{Note, Observer, Setup, View};

/// Every oracle.
#[derive(Clone, Debug)]
pub struct Oracles {
    /// Nothing lost, nothing ended twice.
    pub ledger: ledger::Ledger,
    /// `burst + rate · T`.
    pub rate: rate::Rate,
    /// `max_concurrency`, and the node's slots.
    pub concurrency: concurrency::Concurrency,
    /// Nothing in quiet hours.
    pub quiet: quiet::Quiet,
    /// Nothing at or after expiry.
    pub expiry: expiry::Expiry,
    /// Lines in order.
    pub order: order::Order,
    /// Nothing while shut, then one probe.
    pub shut: shut::Shut,
    /// What may go, goes.
    pub liveness: liveness::Liveness,
    /// `explain` and `decide` agree.
    pub agreement: agreement::Agreement,
}

impl Oracles {
    /// For the world of `setup`.
    pub fn new(setup: &Setup) -> Self {
        Self {
            ledger: ledger::Ledger::default(),
            rate: rate::Rate::new(setup),
            concurrency: concurrency::Concurrency::new(setup),
            quiet: quiet::Quiet::new(setup),
            expiry: expiry::Expiry::new(),
            order: order::Order::new(setup),
            shut: shut::Shut::new(setup),
            liveness: liveness::Liveness::new(setup),
            agreement: agreement::Agreement::default(),
        }
    }

    /// Each oracle's name and what it found wrong.
    pub fn verdicts(&self) -> [(&'static str, &[String]); 9] {
        [
            ("nothing lost, ended twice or sent twice without a reason", self.ledger.violations()),
            ("rate: at most burst + rate · T", self.rate.violations()),
            ("concurrency: at most max_concurrency in flight", self.concurrency.violations()),
            ("quiet hours: nothing sent in them", self.quiet.violations()),
            ("expiry: nothing sent at or after it", self.expiry.violations()),
            ("order: lines in order, one at a time", self.order.violations()),
            ("throttle, 503 and breaker: nothing while shut, then one probe", self.shut.violations()),
            ("liveness: what may go is not left waiting", self.liveness.violations()),
            ("explain agrees with the dispatcher", self.agreement.violations()),
        ]
    }
}

impl Observer for Oracles {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        self.ledger.note(view, note);
        self.rate.note(view, note);
        self.concurrency.note(view, note);
        self.quiet.note(view, note);
        self.expiry.note(view, note);
        self.order.note(view, note);
        self.shut.note(view, note);
        self.liveness.note(view, note);
        self.agreement.note(view, note);
    }
}
