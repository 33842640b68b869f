//! What the producers of a run know: what was accepted, how long answers took, and what was strange.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::dice::Dice;

/// An answer to a publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    /// None: no answer came.
    pub(crate) status: Option<u16>,
    pub(crate) has_retry_after: bool,
}

/// One for all producers of a run.
#[derive(Default)]
pub(crate) struct Ledger {
    closed: AtomicBool,
    quiet_alone: AtomicBool,
    requests: AtomicU64,
    numbers: AtomicU64,
    accepted: AtomicU64,
    counts: Mutex<HashMap<&'static str, u64>>,
    answers: Mutex<Vec<Answered>>,
    ids: Mutex<Vec<String>>,
    strange: Mutex<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Whether more is to be published.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    /// Nothing new is published from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether nothing comes to the destination with quiet hours by itself: what waits there has nobody to wake it but the clock.
    pub(crate) fn leave_quiet_alone(&self, alone: bool) {
        self.quiet_alone.store(alone, Ordering::Relaxed);
    }

    pub(crate) fn leaves_quiet_alone(&self) -> bool {
        self.quiet_alone.load(Ordering::Relaxed)
    }

    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that no other event and no other key has.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Another event for this destination.
    pub(crate) fn note_for(&self, name: &'static str) {
        *lock(&self.counts).entry(name).or_default() += 1;
    }

    /// Events for this destination so far.
    pub(crate) fn count_for(&self, name: &str) -> u64 {
        lock(&self.counts).get(name).copied().unwrap_or(0)
    }

    /// A request was answered, or not.
    pub(crate) fn answered(&self, answer: Answered, ids: Vec<String>) {
        self.accepted.fetch_add(ids.len() as u64, Ordering::Relaxed);
        lock(&self.ids).extend(ids);
        lock(&self.answers).push(answer);
    }

    /// Events that were accepted, each as often as it was answered.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Their ids.
    pub(crate) fn ids(&self) -> Vec<String> {
        lock(&self.ids).clone()
    }

    /// One of them.
    pub(crate) fn any_id(&self, dice: &mut Dice) -> Option<String> {
        dice.any(&lock(&self.ids)).cloned()
    }

    /// Answers to requests that were sent at or after this.
    pub(crate) fn answers_since(&self, t: u64) -> Vec<Answered> {
        lock(&self.answers).iter().filter(|answer| answer.sent >= t).copied().collect()
    }

    /// Something that may never be.
    pub(crate) fn strange(&self, what: String) {
        lock(&self.strange).push(what);
    }

    pub(crate) fn strange_things(&self) -> Vec<String> {
        lock(&self.strange).clone()
    }
}
