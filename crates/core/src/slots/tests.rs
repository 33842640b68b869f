use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The database: one clock, one truth.
struct Shared {
    now: i64,
    slots: Vec<Held>,
    leases: BTreeMap<NodeNo, (i64, bool)>,
}

/// A node, its own clock ahead of the database's by so much.
struct Node {
    membership: Membership,
    skew: i64,
    stopped: bool,
    awake_at: i64,
}

impl Shared {
    fn new() -> Self {
        Self {
            now: 0,
            slots: vec![Held { by: None, epoch: Epoch(0) }; usize::from(SLOTS)],
            leases: BTreeMap::new(),
        }
    }

    fn join(&mut self, no: u64, skew: i64) -> Node {
        let me = NodeNo(no);
        self.leases.insert(me, (self.now + LEASE.get(), false));
        let membership = Membership::new(me, Mono::from_millis(self.now + skew));
        Node { membership, skew, stopped: false, awake_at: 0 }
    }

    fn roll(&self) -> Roll {
        let member = |(node, (until, leaving)): (&NodeNo, &(i64, bool))| Member {
            node: *node,
            lease_left: Millis::new(until - self.now),
            leaving: *leaving,
        };
        Roll { members: self.leases.iter().map(member).collect(), slots: self.slots.clone() }
    }

    /// One round of a node, as the engine makes it; the request takes `travel` to arrive, and its answer nothing.
    fn round(&mut self, node: &mut Node, travel: i64) {
        let me = node.membership.me();
        let sent = Mono::from_millis(self.now + node.skew);
        self.now += travel;
        match self.leases.get_mut(&me).filter(|(until, _)| *until > self.now) {
            None => node.stopped = true,
            Some(lease) => {
                lease.0 = self.now + LEASE.get();
                let plan = node.membership.renewed(sent, &self.roll());
                for slot in plan.claim {
                    let held = &mut self.slots[slot.index()];
                    let free = held
                        .by
                        .is_none_or(|by| self.leases.get(&by).is_none_or(|(until, _)| *until <= self.now));
                    if free {
                        *held = Held { by: Some(me), epoch: Epoch(held.epoch.0 + 1) };
                        node.membership.granted(slot, held.epoch);
                    }
                }
                let passing: Vec<Slot> = (node.membership.held())
                    .filter(|(_, tenure)| matches!(tenure, Tenure::Passing(..)))
                    .map(|(slot, _)| slot)
                    .collect();
                for slot in passing {
                    self.slots[slot.index()].by = None;
                    node.membership.given_back(slot);
                }
            }
        }
    }
}

impl Node {
    fn works(&self, slot: Slot, now: i64) -> bool {
        !self.stopped
            && self.membership.tenure(slot) != Tenure::Elsewhere
            && self.membership.may_work(Mono::from_millis(now + self.skew))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pauses, slow requests, deaths and leaves in any order, clocks hours apart: no slot is ever worked by two.
    #[test]
    fn a_slot_is_worked_by_one_node_at_most(
        steps in prop::collection::vec((0..5_usize, 0..3_000_i64, 0..4_000_i64, 0..20_u8), 1..120),
    ) {
        let mut shared = Shared::new();
        let mut nodes: Vec<Node> = (1..=5).map(|no| shared.join(no, i64::try_from(no).unwrap() * 3_600_000)).collect();
        for (who, wait, travel, event) in steps {
            shared.now += wait;
            let now = shared.now;
            match event {
                0 => nodes[who].awake_at = now + 25_000,
                1 => nodes[who].stopped = true,
                2 => {
                    nodes[who].membership.leave();
                    if let Some(lease) = shared.leases.get_mut(&nodes[who].membership.me()) { lease.1 = true; }
                }
                _ if nodes[who].stopped || nodes[who].awake_at > now => {}
                _ => shared.round(&mut nodes[who], travel),
            }
            for slot in Slot::all() {
                let workers = nodes.iter().filter(|node| node.works(slot, shared.now)).count();
                prop_assert!(workers <= 1, "slot {} is worked by {workers}", slot.get());
            }
        }
    }

    /// When nothing goes wrong any more, everything is held, in equal shares, within a lease and a few rounds.
    #[test]
    fn shares_become_equal(count in 1..7_u64, die in 0..7_u64) {
        let mut shared = Shared::new();
        let mut nodes = vec![];
        for no in 1..=count {
            nodes.push(shared.join(no, 0));
            for _ in 0..2 {
                nodes.iter_mut().for_each(|node| shared.round(node, 1));
                shared.now += RENEW_EVERY.get();
            }
        }
        let alive = |no: u64| die >= count || count == 1 || no != die + 1;
        nodes.retain(|node| alive(node.membership.me().0));
        for _ in 0..8 {
            nodes.iter_mut().for_each(|node| shared.round(node, 1));
            shared.now += RENEW_EVERY.get();
        }
        let held: Vec<usize> = nodes.iter().map(|node| node.membership.held().count()).collect();
        prop_assert_eq!(held.iter().sum::<usize>(), usize::from(SLOTS));
        prop_assert!(held.iter().max().unwrap() - held.iter().min().unwrap() <= 1, "{held:?}");
    }
}

#[test]
fn a_node_that_cannot_renew_stops_two_seconds_before_its_lease_ends() {
    let node = Membership::new(NodeNo(1), Mono::from_millis(1_000));
    assert!(node.may_work(Mono::from_millis(8_999)));
    assert!(!node.may_work(Mono::from_millis(9_000)));
}

#[test]
fn what_was_lost_is_noticed_even_if_it_came_back() {
    let mut shared = Shared::new();
    let mut node = shared.join(1, 0);
    shared.round(&mut node, 0);
    assert_eq!(node.membership.held().count(), 256);
    shared.slots[7] = Held { by: Some(NodeNo(1)), epoch: Epoch(99) };
    let plan = node.membership.renewed(Mono::from_millis(10), &shared.roll());
    assert_eq!(plan.lost, [Slot::new(7)]);
}

#[test]
fn who_leaves_passes_on_everything_and_claims_nothing() {
    let mut shared = Shared::new();
    let mut node = shared.join(1, 0);
    shared.round(&mut node, 0);
    node.membership.leave();
    let plan = node.membership.renewed(Mono::from_millis(10), &shared.roll());
    assert_eq!((plan.claim.len(), plan.pass.len()), (0, 256));
    assert_eq!(
        node.membership.tenure(Slot::new(0)),
        Tenure::Passing(Epoch(1), Mono::from_millis(10) + DRAIN)
    );
}

#[test]
fn who_has_not_got_its_share_looks_again_soon_and_who_has_does_not() {
    let mut shared = Shared::new();
    let mut first = shared.join(1, 0);
    shared.round(&mut first, 0);
    let mut second = shared.join(2, 0);
    let plan = second.membership.renewed(Mono::from_millis(10), &shared.roll());
    assert_eq!((plan.claim.len(), plan.look_after), (0, Some(LOOK_FOR_SHARE)));
    shared.round(&mut first, 0);
    let plan = second.membership.renewed(Mono::from_millis(20), &shared.roll());
    assert_eq!(plan.claim.len(), 128);
    assert_eq!(plan.look_after, Some(LEASE), "nothing is missing but the end of another's lease");
    let plan = first.membership.renewed(Mono::from_millis(20), &shared.roll());
    assert_eq!((plan.pass.len(), plan.look_after), (0, Some(LEASE)));
}

#[test]
fn a_node_has_a_part_once_it_has_slots_or_others_that_live_have_them_all() {
    let mut shared = Shared::new();
    let mut first = shared.join(1, 0);
    assert!(!first.membership.has_part(&shared.roll()), "all are free, and it has not claimed any yet");
    shared.round(&mut first, 0);
    assert!(first.membership.has_part(&shared.roll()));
    let second = shared.join(2, 0);
    assert!(second.membership.has_part(&shared.roll()), "it waits for what the first passes on");
    shared.now += LEASE.get();
    assert!(!second.membership.has_part(&shared.roll()), "the first is gone: all are there to be claimed");
}
