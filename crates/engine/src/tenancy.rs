//! Which slots a node works, until when, and what it waits for: the part of the driver that needs neither sockets nor a
//! runtime, so that the simulator's nodes run the same code.
//!
//! ```text
//!   work until ──► the database is out of reach: start nothing ──► lease ended: cut everything off, once
//!   pass a slot ──► its last attempt has ended, or its time is up ──► it is empty
//!   what was accepted here for lanes that keep an order ──► with the next news, by its number
//! ```

use std::collections::{BTreeMap, HashMap};

use tidegate_core::delivery::Delivery;
use tidegate_core::slots::{Epoch, Slot};
use tidegate_core::time::{Millis, Mono, Timestamp};
use tidegate_store::DestinationNo;

use crate::dispatcher::LaneId;

/// News is not read more often than this.
const LOOKS_APART: Millis = Millis::new(35);

/// What this node has of the cluster.
#[derive(Debug, Default)]
pub struct Tenancy {
    /// The slots that it works: under which epoch, and since when.
    slots: BTreeMap<Slot, (Epoch, Timestamp)>,
    /// When it must stop, by its own clock.
    until: Option<Mono>,
    /// It has stopped.
    stopped: bool,
    /// The database was out of reach at the last look.
    in_doubt: bool,
    passing: Vec<Passing>,
    /// News is being read.
    reading: bool,
    /// When that last began.
    read_at: Option<Mono>,
    /// Something came meanwhile.
    again: bool,
    /// Lanes keep in mind what they have settled.
    watching: bool,
    /// What was accepted here for lanes that keep an order: it waits for the next news, since what another node accepted before it
    /// may not be known yet.
    accepted: Vec<(DestinationNo, Delivery)>,
    /// What was accepted before the news that is being read, and what that news has brought so far.
    told: Vec<(DestinationNo, Delivery)>,
}

/// A slot that goes to another node.
#[derive(Debug)]
struct Passing {
    slot: Slot,
    /// Lanes that may have something in flight.
    busy: Vec<LaneId>,
    until: Mono,
}

/// What has become of slots that are passed on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// What these lanes still have in flight is to be cut off: the time of their slot is up.
    pub late: Vec<LaneId>,
    /// Nothing of these is in flight any more, once that is done.
    pub empty: Vec<Slot>,
}

impl Tenancy {
    /// Whether it works a slot; one that is passed on is not worked any more.
    pub fn holds(&self, slot: Slot) -> bool {
        self.slots.contains_key(&slot)
    }
    /// The epoch under which it works a slot.
    pub fn epoch(&self, slot: Slot) -> Option<Epoch> {
        self.slots.get(&slot).map(|(epoch, _)| *epoch)
    }
    /// The slots that it works.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.keys().copied()
    }
    /// Whether it may start an attempt: as long as results can be written down, as far as anybody knows.
    pub fn may_start(&self, now: Mono) -> bool {
        self.may_work(now) && !self.in_doubt
    }
    /// Whether it may let attempts in flight go on.
    pub fn may_work(&self, now: Mono) -> bool {
        self.until.is_some_and(|until| now < until)
    }
    /// When it must be looked at again.
    pub fn next_look(&self) -> Option<Mono> {
        let lease = self.until.filter(|_| !self.stopped);
        self.passing.iter().map(|passing| passing.until).chain(lease).min()
    }

    /// The lease holds: it may work until then.
    pub fn work_until(&mut self, until: Mono) {
        (self.until, self.stopped, self.in_doubt) = (Some(until), false, false);
    }
    /// Whether the database was in reach, at a renewal or when news was read. If not, what is in flight may still end within the
    /// lease, and be written down later; what would start now might be lost to this node, and be sent again by another.
    pub const fn reached(&mut self, reached: bool) {
        self.in_doubt = !reached;
    }
    /// The lease may end without anybody saying so. Says once that it has: then nothing must be in flight any more.
    pub fn has_ended(&mut self, now: Mono) -> bool {
        let ended = !self.stopped && self.until.is_some() && !self.may_work(now);
        self.stopped |= ended;
        ended
    }

    /// A slot is this node's from now on, under this epoch.
    pub fn take(&mut self, slot: Slot, epoch: Epoch, now: Timestamp) {
        self.forget(slot);
        self.slots.insert(slot, (epoch, now));
    }
    /// A slot is somebody else's.
    pub fn lose(&mut self, slot: Slot) {
        self.slots.remove(&slot);
        self.passing.retain(|passing| passing.slot != slot);
        self.forget(slot);
    }
    /// Forgets what waits for news in a slot that changes hands. It is in the store for the next node, and may be over before
    /// this one has the slot again.
    fn forget(&mut self, slot: Slot) {
        for waiting in [&mut self.accepted, &mut self.told] {
            waiting.retain(|(destination, _)| Slot::of(destination.0) != slot);
        }
    }
    /// A slot goes to another node when these lanes have nothing in flight any more, at the latest then.
    pub fn pass(&mut self, slot: Slot, lanes: Vec<LaneId>, until: Mono) {
        self.slots.remove(&slot);
        self.passing.push(Passing { slot, busy: lanes, until });
    }
    /// Whether any slot is being passed on.
    pub const fn passes(&self) -> bool {
        !self.passing.is_empty()
    }
    /// Which of the slots that are passed on are empty by now.
    pub fn passed(&mut self, now: Mono, is_busy: impl Fn(LaneId) -> bool) -> Passed {
        let mut passed = Passed::default();
        self.passing.retain_mut(|passing| {
            passing.busy.retain(|lane| is_busy(*lane));
            if now >= passing.until {
                passed.late.append(&mut passing.busy);
            }
            if passing.busy.is_empty() {
                passed.empty.push(passing.slot);
            }
            !passing.busy.is_empty()
        });
        passed
    }

    /// Whether this node took the slot only after something was accepted for it at `accepted_at`. Then the slot's former node
    /// may have sent that already, since this node may hear late of its own commit. Only the store knows what became of it.
    pub fn took_after(&self, slot: Slot, accepted_at: Timestamp) -> bool {
        self.slots.get(&slot).is_some_and(|(_, taken_at)| accepted_at <= *taken_at)
    }
    /// This node has accepted a delivery for a lane that keeps an order: it comes in with the next news.
    pub fn await_news(&mut self, destination: DestinationNo, delivery: Delivery) {
        self.accepted.push((destination, delivery));
    }
    /// When to read news, if not at once: looks are a while apart, so that many events have one. If it is being read, that is done
    /// again afterwards.
    pub fn read_news(&mut self, now: Mono) -> Option<Mono> {
        if std::mem::replace(&mut self.reading, true) {
            self.again = true;
            return None;
        }
        self.again = false;
        self.told.append(&mut self.accepted);
        let at = self.read_at.map_or(now, |before| now.max(before + LOOKS_APART));
        self.read_at = Some(at);
        Some(at)
    }
    /// News has come: what goes to its lanes now, in the order of numbers. If there is `more`, it comes with the next news, and
    /// something of that may belong before this.
    pub fn arrived(
        &mut self,
        brought: Vec<(DestinationNo, Delivery)>,
        more: bool,
    ) -> Vec<(DestinationNo, Delivery)> {
        self.told.extend(brought);
        self.again |= more;
        if more { Vec::new() } else { self.complete() }
    }
    /// Everything that goes to its lane, now that the news has been read to its end. What was accepted here since the reading
    /// began waits for the next news, unless its number is below one that was read: its publisher may have got the answer here
    /// and published the next event at another node.
    fn complete(&mut self) -> Vec<(DestinationNo, Delivery)> {
        let mut all = std::mem::take(&mut self.told);
        if !self.accepted.is_empty() {
            let mut last = HashMap::new();
            for (destination, delivery) in &all {
                let number = last.entry(*destination).or_insert(delivery.id.sequence());
                *number = delivery.id.sequence().max(*number);
            }
            let is_before = |(destination, delivery): &mut (DestinationNo, Delivery)| {
                last.get(destination).is_some_and(|last| delivery.id.sequence() < *last)
            };
            all.extend(self.accepted.extract_if(.., is_before));
        }
        all.sort_by_key(|(_, delivery)| delivery.id.sequence());
        all
    }
    /// Whether lanes must remember what they have settled, if that has changed: while news is read or anything waits for it. A
    /// refill may have brought the same delivery, and it may be over by the time the news brings it again.
    pub fn watches(&mut self) -> Option<bool> {
        let watches = self.reading || !self.told.is_empty() || !self.accepted.is_empty();
        (std::mem::replace(&mut self.watching, watches) != watches).then_some(watches)
    }
    /// The news was taken in, or could not be read. Says whether to read again at once.
    pub fn done_reading(&mut self) -> bool {
        self.reading = false;
        self.again
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::draw::Draw;
    use tidegate_core::id::DeliveryId;
    use tidegate_core::pattern::EventType;
    use tidegate_core::policy::Policy;
    use tidegate_core::sequence::Sequence;
    use tidegate_core::settle::{Incoming, Terms, accept};

    use super::*;

    const HERE: DestinationNo = DestinationNo(7);
    const THERE: DestinationNo = DestinationNo(8);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + ms)
    }

    fn delivery(ms: i64) -> Delivery {
        let number = Sequence::at(at(ms));
        let incoming = Incoming {
            id: DeliveryId::numbered(number, Draw(1)),
            sequence: number.get(),
            event_type: EventType::parse("order.created").unwrap(),
            occurred_at: None,
            expires_at: None,
            ttl: None,
            deliver_at: None,
            ordering_key: None,
            priority: tidegate_core::delivery::Priority::NORMAL,
        };
        accept(at(ms), incoming, &Policy::default(), &Terms::default())
    }

    fn arrived(tenancy: &mut Tenancy, brought: Vec<(DestinationNo, Delivery)>) -> Vec<(u32, i64)> {
        let arrived = tenancy.arrived(brought, false);
        arrived.iter().map(|(to, it)| (to.0, (it.accepted_at - at(0)).get())).collect()
    }

    fn reads(tenancy: &mut Tenancy) -> bool {
        tenancy.read_news(Mono::from_millis(1)).is_some()
    }

    fn of(destination: DestinationNo) -> Slot {
        Slot::of(destination.0)
    }

    #[test]
    fn what_waits_for_news_of_a_slot_that_changed_hands_is_left_to_the_store() {
        let mut tenancy = Tenancy::default();
        for change in [Tenancy::lose, |tenancy: &mut Tenancy, slot| tenancy.take(slot, Epoch(2), at(9))] {
            tenancy.await_news(HERE, delivery(1));
            assert!(reads(&mut tenancy));
            tenancy.await_news(HERE, delivery(2));
            tenancy.await_news(THERE, delivery(3));
            change(&mut tenancy, of(HERE));
            assert!(arrived(&mut tenancy, vec![]).is_empty());
            assert!(!tenancy.done_reading() && reads(&mut tenancy));
            assert_eq!(arrived(&mut tenancy, vec![]), [(THERE.0, 3)]);
            assert!(!tenancy.done_reading());
        }
    }

    #[test]
    fn settled_deliveries_are_kept_in_mind_as_long_as_anything_waits_for_news() {
        let mut tenancy = Tenancy::default();
        assert_eq!(tenancy.watches(), None);
        tenancy.await_news(HERE, delivery(1));
        assert!(reads(&mut tenancy));
        assert_eq!(tenancy.watches(), Some(true));
        // It could not be read.
        assert!(!tenancy.done_reading());
        assert_eq!(tenancy.watches(), None);
        assert!(reads(&mut tenancy));
        assert_eq!(arrived(&mut tenancy, vec![(HERE, delivery(0))]), [(HERE.0, 0), (HERE.0, 1)]);
        assert!(!tenancy.done_reading());
        assert_eq!(tenancy.watches(), Some(false));
    }

    #[test]
    fn looks_at_the_news_are_a_while_apart_and_the_first_is_at_once() {
        let mut tenancy = Tenancy::default();
        let (now, later) = (Mono::from_millis(500), Mono::from_millis(900));
        assert_eq!(tenancy.read_news(now), Some(now));
        assert_eq!(tenancy.read_news(now), None);
        assert!(tenancy.done_reading());
        assert_eq!(tenancy.read_news(now), Some(now + LOOKS_APART));
        assert!(!tenancy.done_reading());
        assert_eq!(tenancy.read_news(later), Some(later));
    }

    #[test]
    fn what_was_accepted_before_a_slot_was_taken_may_be_over() {
        let mut tenancy = Tenancy::default();
        assert!(!tenancy.took_after(of(HERE), at(5)));
        tenancy.take(of(HERE), Epoch(3), at(5));
        assert!(tenancy.took_after(of(HERE), at(4)) && tenancy.took_after(of(HERE), at(5)));
        assert!(!tenancy.took_after(of(HERE), at(6)) && !tenancy.took_after(of(THERE), at(4)));
    }

    #[test]
    fn nothing_starts_while_the_database_is_out_of_reach_and_what_is_in_flight_goes_on() {
        let (mut tenancy, now) = (Tenancy::default(), Mono::from_millis(1));
        tenancy.work_until(Mono::from_millis(10));
        assert!(tenancy.may_start(now) && tenancy.may_work(now));
        tenancy.reached(false);
        assert!(!tenancy.may_start(now) && tenancy.may_work(now) && !tenancy.has_ended(now));
        tenancy.work_until(Mono::from_millis(10));
        assert!(tenancy.may_start(now));
        tenancy.reached(false);
        tenancy.reached(true);
        assert!(tenancy.may_start(now) && !tenancy.may_start(Mono::from_millis(10)));
    }

    #[test]
    fn a_slot_is_passed_on_when_it_is_empty_or_late() {
        let mut tenancy = Tenancy::default();
        tenancy.take(of(HERE), Epoch(1), at(0));
        tenancy.pass(of(HERE), Vec::new(), Mono::from_millis(100));
        assert!(tenancy.passes() && !tenancy.holds(of(HERE)));
        assert_eq!(tenancy.passed(Mono::from_millis(1), |_| true).empty, [of(HERE)]);
        assert!(!tenancy.passes());
    }
}
