//! Slots: which node of several works which destinations.
//!
//! ```text
//!   destination ──► slot (one of 256) ──► the node that holds it, under an epoch, for as long as it renews its lease
//!
//!   free ──claim──► held ──(above its share, or leaving)──► passing on ──last attempt ended──► free
//!    ▲                │                                          │
//!    └── lease ended ─┴──────────────────────────────────────────┘
//! ```
//!
//! Every node decides for itself what to claim and what to pass on, from the list of nodes and slots that its last renewal
//! showed. The shares computed from one list add up to all slots, so nodes agree without speaking. A slot is taken from a node
//! only after its lease has ended by the database's clock; by its own clock the node has stopped before that.

use crate::time::{Millis, Mono};

/// Slots in a cluster.
pub const SLOTS: u16 = 256;
/// How long a lease holds after the renewal that was answered.
pub const LEASE: Millis = Millis::seconds(10);
/// How often it is renewed.
pub const RENEW_EVERY: Millis = Millis::seconds(2);
/// How often a node without its full share looks for free slots: what others give back is worked by nobody, and the notice of
/// it may be lost.
pub const LOOK_FOR_SHARE: Millis = Millis::new(250);
/// How long before the end of its lease a node that could not renew stops: it starts nothing, and cuts off what is in flight.
pub const STOP_BEFORE: Millis = Millis::seconds(2);
/// How long a slot that is passed on waits for its last attempt. (A node that is stopped has a limit of its own for that.)
pub const DRAIN: Millis = Millis::seconds(35);

/// Destinations that move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

impl Slot {
    /// The slot of a destination, by its number.
    pub fn of(destination: u32) -> Self {
        Self(u8::try_from(destination % u32::from(SLOTS)).unwrap_or(u8::MAX))
    }
    /// The slot with this number.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }
    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }
    /// Its place in a list of all.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }
}

/// A node's place among those that are there at the same time: it names its share of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(u8);

impl Seat {
    /// Bits of a seat's number.
    pub const BITS: u32 = 5;
    /// Seats. No node sits on the last one: what is published from SQL is numbered from its share, so 31 nodes can be there at
    /// a time.
    pub const COUNT: u8 = 1 << Self::BITS;

    /// The seat with this number.
    pub const fn new(number: u8) -> Option<Self> {
        if number < Self::COUNT { Some(Self(number)) } else { None }
    }
    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A process, from its registration to its end. A node that comes back is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNo(pub u64);

/// Grows with every change of hands: what was written under an older one counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// A node as the last renewal showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub node: NodeNo,
    /// What is left of its lease, by the database's clock; zero or less: it has ended.
    pub lease_left: Millis,
    /// It is to stop and takes nothing more.
    pub leaving: bool,
}

/// A slot as the last renewal showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who has it.
    pub by: Option<NodeNo>,
    /// Under which epoch, or under which it was last held.
    pub epoch: Epoch,
}

/// What a renewal showed of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roll {
    /// All nodes that are known, in any order.
    pub members: Vec<Member>,
    /// All slots, by number.
    pub slots: Vec<Held>,
}

/// How a node stands to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// It is somebody else's, or nobody's.
    Elsewhere,
    /// It works it.
    Held(Epoch),
    /// It starts nothing more in it, and gives it back when its last attempt has ended, or at this time.
    Passing(Epoch, Mono),
}

/// What a node does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Ask for these: they are nobody's.
    pub claim: Vec<Slot>,
    /// Start nothing more in these, and give them back when they are empty.
    pub pass: Vec<Slot>,
    /// These went to somebody else: nothing that is still under way in them counts.
    pub lost: Vec<Slot>,
    /// Look again then, if not earlier: a lease ends, or others are about to give something back.
    pub look_after: Option<Millis>,
}

/// What a node is to have: `count` slots, preferably every `of`-th from `place` on.
struct Share {
    place: usize,
    of: usize,
    count: usize,
}

/// One node's part in the cluster.
#[derive(Clone, Debug)]
pub struct Membership {
    me: NodeNo,
    /// When the last renewal that was answered had been sent.
    renewed: Mono,
    leaving: bool,
    slots: Vec<Tenure>,
}

impl Membership {
    /// A node that has just registered, with a request that was sent at `sent`.
    pub fn new(me: NodeNo, sent: Mono) -> Self {
        Self { me, renewed: sent, leaving: false, slots: vec![Tenure::Elsewhere; usize::from(SLOTS)] }
    }
    /// Who it is.
    pub const fn me(&self) -> NodeNo {
        self.me
    }
    /// How it stands to a slot.
    pub fn tenure(&self, slot: Slot) -> Tenure {
        self.slots[slot.index()]
    }
    /// Slots that it works, or passes on.
    pub fn held(&self) -> impl Iterator<Item = (Slot, Tenure)> {
        Slot::all().zip(self.slots.iter().copied()).filter(|(_, tenure)| *tenure != Tenure::Elsewhere)
    }
    /// Whether it has a part in the cluster that showed this: slots of its own, or none because others that live have them all.
    pub fn has_part(&self, roll: &Roll) -> bool {
        let lives = |node| roll.members.iter().any(|one| one.node == node && one.lease_left > Millis::ZERO);
        let with_another = |held: &Held| held.by.is_some_and(|node| node != self.me && lives(node));
        self.held().next().is_some() || roll.slots.iter().all(with_another)
    }
    /// It is to stop: everything is passed on with the next plan.
    pub const fn leave(&mut self) {
        self.leaving = true;
    }

    /// Whether it may start an attempt, and let those in flight go on.
    pub fn may_work(&self, now: Mono) -> bool {
        now < self.stops_at()
    }
    /// When it must stop, unless it renews before.
    pub fn stops_at(&self) -> Mono {
        self.renewed + (LEASE - STOP_BEFORE)
    }

    /// A renewal that was sent at `sent` was answered, and showed this.
    pub fn renewed(&mut self, sent: Mono, roll: &Roll) -> Plan {
        self.renewed = sent;
        let mut plan = Plan::default();
        for slot in Slot::all() {
            let shown = roll.slots[slot.index()];
            let mine = match self.slots[slot.index()] {
                Tenure::Elsewhere => continue,
                Tenure::Held(epoch) | Tenure::Passing(epoch, _) => epoch,
            };
            if shown.by != Some(self.me) || shown.epoch != mine {
                self.slots[slot.index()] = Tenure::Elsewhere;
                plan.lost.push(slot);
            }
        }
        let Share { place, of, count } = self.share(roll);
        let held = |slot: &Slot| matches!(self.slots[slot.index()], Tenure::Held(_));
        let free = |slot: &Slot| match roll.slots[slot.index()].by {
            None => true,
            // A claim whose answer was lost.
            Some(node) if node == self.me => self.slots[slot.index()] == Tenure::Elsewhere,
            Some(node) => {
                !roll.members.iter().any(|member| member.node == node && member.lease_left > Millis::ZERO)
            }
        };
        // Destinations are numbered one after the other: every n-th slot to the same node spreads also a few of them.
        let (own, others): (Vec<Slot>, Vec<Slot>) = Slot::all().partition(|slot| slot.index() % of == place);
        let in_order = || own.iter().chain(&others).copied();
        plan.pass = in_order().filter(held).skip(count).collect();
        let missing = count.saturating_sub(in_order().filter(held).count());
        plan.claim = in_order().filter(free).take(missing).collect();
        let is_short = plan.claim.len() < missing;
        plan.look_after = self.next_end(roll).into_iter().chain(is_short.then_some(LOOK_FOR_SHARE)).min();
        for slot in &plan.pass {
            if let Tenure::Held(epoch) = self.slots[slot.index()] {
                self.slots[slot.index()] = Tenure::Passing(epoch, sent + DRAIN);
            }
        }
        plan
    }

    /// This node's share, among those that are there and stay.
    fn share(&self, roll: &Roll) -> Share {
        let mut there: Vec<NodeNo> = (roll.members.iter())
            .filter(|member| member.lease_left > Millis::ZERO && !member.leaving)
            .map(|member| member.node)
            .collect();
        there.sort_unstable();
        let place = there.iter().position(|node| *node == self.me);
        let Some(place) = place.filter(|_| !self.leaving) else { return Share { place: 0, of: 1, count: 0 } };
        let of = there.len();
        let (each, over) = (usize::from(SLOTS) / of, usize::from(SLOTS) % of);
        Share { place, of, count: each + usize::from(place < over) }
    }

    /// When the lease of the next of the others ends.
    fn next_end(&self, roll: &Roll) -> Option<Millis> {
        let others = roll.members.iter().filter(|member| member.node != self.me);
        others.map(|member| member.lease_left).filter(|left| *left > Millis::ZERO).min()
    }

    /// A claim was granted.
    pub fn granted(&mut self, slot: Slot, epoch: Epoch) {
        self.slots[slot.index()] = Tenure::Held(epoch);
    }
    /// A slot that was passed on is given back.
    pub fn given_back(&mut self, slot: Slot) {
        self.slots[slot.index()] = Tenure::Elsewhere;
    }
}

#[cfg(test)]
mod tests;
