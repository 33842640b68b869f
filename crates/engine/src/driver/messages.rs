//! The messages of recent events, so that the fast path reads nothing back from the store.
//!
//! Two generations: when the young one has reached its size it becomes the old one, and what was old is forgotten. So a
//! destination that holds a million events costs no memory here, and what was accepted a moment ago is always at hand.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::sequence::Sequence;
use tidegate_store::event::Message;

/// Bytes of one generation, with what an entry costs besides its payload.
const GENERATION: usize = 16 << 20;
const ENTRY: usize = 128;

/// Messages by the number of the delivery.
#[derive(Debug, Default)]
pub(super) struct Messages {
    young: HashMap<Sequence, Arc<Message>>,
    old: HashMap<Sequence, Arc<Message>>,
    bytes: usize,
}

impl Messages {
    /// An event was accepted with these deliveries.
    pub(super) fn keep(&mut self, deliveries: impl Iterator<Item = Sequence>, message: &Arc<Message>) {
        let before = self.young.len();
        self.young.extend(deliveries.map(|delivery| (delivery, Arc::clone(message))));
        let kept = self.young.len() - before;
        if kept == 0 {
            return;
        }
        // Deliveries of one event share its payload.
        self.bytes += message.payload.len() + kept * ENTRY;
        if self.bytes > GENERATION {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young = HashMap::new();
            self.bytes = 0;
        }
    }
    /// The message of a delivery, if it is at hand.
    pub(super) fn get(&self, delivery: Sequence) -> Option<Arc<Message>> {
        self.young.get(&delivery).or_else(|| self.old.get(&delivery)).cloned()
    }
    /// A delivery is over. Its message, if it is at hand.
    pub(super) fn take(&mut self, delivery: Sequence) -> Option<Arc<Message>> {
        let Some(message) = self.young.remove(&delivery) else { return self.old.remove(&delivery) };
        let last = Arc::strong_count(&message) == 1;
        self.bytes = self.bytes.saturating_sub(ENTRY + if last { message.payload.len() } else { 0 });
        Some(message)
    }
}
