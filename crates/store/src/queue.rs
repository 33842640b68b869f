//! A queue between any task and a thread: never blocks those who put something in.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Work that waits for a thread.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    closed: bool,
    /// The thread is woken when this many wait.
    wake_at: usize,
    /// One of those that wait is not to wait for others.
    urgent: bool,
}

/// Whether something may wait for others to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It may: one commit for all of them costs less.
    WithOthers,
    /// Somebody stands until it is done.
    AtOnce,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        let inner = Inner { waiting: VecDeque::new(), closed: false, wake_at: 1, urgent: false };
        Self { inner: Mutex::new(inner), arrived: Condvar::new() }
    }

    /// A panic elsewhere leaves the queue as whole as it was: nothing is done under its lock that could fail.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something in; gives it back if nobody will take it any more.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.push_as(item, Urgency::WithOthers)
    }

    /// Puts something in, to be done at once or together with others.
    pub(crate) fn push_as(&self, item: T, urgency: Urgency) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(item);
        }
        inner.waiting.push_back(item);
        inner.urgent |= urgency == Urgency::AtOnce;
        let enough = inner.waiting.len() >= inner.wake_at || inner.urgent;
        drop(inner);
        if enough {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Puts something in front of all that waits: more stands until it is done than any of those wait for.
    pub(crate) fn push_first(&self, item: T) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(item);
        }
        inner.waiting.push_front(item);
        drop(inner);
        self.arrived.notify_one();
        Ok(())
    }

    /// Puts back what could not be done, in front of all that came since.
    pub(crate) fn put_back(&self, items: impl DoubleEndedIterator<Item = T>) {
        let mut inner = self.lock();
        items.rev().for_each(|item| inner.waiting.push_front(item));
    }

    /// Nothing is taken in any more; what waits is still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// The next one; `None` when closed and empty.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut inner = self.lock();
        loop {
            match inner.waiting.pop_front() {
                Some(item) => return Some(item),
                None if inner.closed => return None,
                None => inner = self.arrived.wait(inner).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// All that waits, as long as `fits` says so, at least one; waits up to `patience` for the first, and then a moment for
    /// as many as `gather` names.
    pub(crate) fn take(
        &self,
        patience: Duration,
        gather: (usize, Duration),
        mut fits: impl FnMut(&T) -> bool,
    ) -> Taken<T> {
        let mut inner = self.lock();
        if inner.waiting.is_empty() && !inner.closed {
            let waited = self
                .arrived
                .wait_timeout_while(inner, patience, |inner| inner.waiting.is_empty() && !inner.closed);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (enough, moment) = gather;
        let waits = |inner: &mut Inner<T>| inner.waiting.len() < enough && !inner.urgent && !inner.closed;
        if waits(&mut inner) {
            inner.wake_at = enough;
            let gathered = self.arrived.wait_timeout_while(inner, moment, waits);
            inner = gathered.unwrap_or_else(PoisonError::into_inner).0;
            inner.wake_at = 1;
        }
        let mut items = Vec::with_capacity(inner.waiting.len());
        while let Some(next) = inner.waiting.front() {
            if !fits(next) && !items.is_empty() {
                break;
            }
            items.extend(inner.waiting.pop_front());
        }
        inner.urgent &= !inner.waiting.is_empty();
        match items.is_empty() {
            false => Taken::Some(items),
            true if inner.closed => Taken::Closed,
            true => Taken::Nothing,
        }
    }
}

impl<T> Queue<T> {
    /// Takes out all that are such, wherever they stand; waits up to `patience` for one, or for `enough` in the queue.
    pub(crate) fn pick(
        &self,
        patience: Duration,
        such: impl Fn(&T) -> bool,
        enough: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let waited = self.arrived.wait_timeout_while(self.lock(), patience, |inner| {
            !inner.waiting.iter().any(|item| such(item) || enough(item))
        });
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        let (picked, left) = inner.waiting.drain(..).partition(such);
        inner.waiting = left;
        let picked: VecDeque<T> = picked;
        picked.into()
    }
}

/// What a look into the queue gave.
pub(crate) enum Taken<T> {
    Some(Vec<T>),
    /// Nothing came in time.
    Nothing,
    /// Nothing is left and nothing more will come.
    Closed,
}
