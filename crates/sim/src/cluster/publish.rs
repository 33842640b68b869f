//! Publishers: each asks any node that listens, waits for the answer, and asks again if there is none.

use std::sync::Arc;

use tidegate_core::delivery::Place;
use tidegate_core::id::DeliveryId;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::settle::{Incoming, accept};
use tidegate_core::draw::Draw;
use tidegate_engine::dispatcher::LaneId;

use super::Cluster;
use super::setup::Stream;
use super::work::{Accepted, Arrival, Event, Work};
use crate::chance::Chance;

#[derive(Debug)]
pub(super) struct Publisher {
    stream: Stream,
    chance: Chance,
    done: bool,
}

impl Publisher {
    pub(super) const fn new(stream: Stream, chance: Chance) -> Self {
        Self { stream, chance, done: false }
    }
    pub(super) const fn is_done(&self) -> bool {
        self.done
    }
}

impl Cluster {
    /// The next event of a publisher that had its last answer, or begins, at `from`.
    pub(super) fn plan_publication(&mut self, p: usize, from: i64) {
        let Publisher { stream, chance, done } = &mut self.publishers[p];
        let wait = if stream.chained && chance.happens(0.6) {
            20.0 + chance.between(0.0, 600.0)
        } else {
            chance.exponential(stream.every.get() as f64 * 1_000.0)
        };
        #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
        let at = from + wait as i64;
        if at > stream.until.get() * 1_000 {
            *done = true;
        } else {
            self.plan(at, Event::Publish(p));
        }
    }

    pub(super) fn publish(&mut self, p: usize) {
        let listening: Vec<usize> = (0..self.nodes.len()).filter(|n| self.nodes[*n].listens()).collect();
        if listening.is_empty() {
            return self.plan(self.us + 200_000, Event::Publish(p));
        }
        let chosen = self.publishers[p].chance.below(listening.len() as u64);
        let n = listening[usize::try_from(chosen).unwrap_or(0)];
        self.nodes[n].asking.insert(p);
        let (at, travel) = (self.us, self.travel());
        self.plan_at_node(n, self.us + travel, Arrival::Published { publisher: p, at });
    }

    /// A node takes in what is published.
    pub(super) fn take_publication(&mut self, n: usize, p: usize, at: i64) {
        let now = self.wall_at(n);
        let (_, latest) = self.nodes[n].clock.between(self.us, self.database_micros());
        let node = &mut self.nodes[n];
        let (number, last) = node.sequence.next(latest, 1, Share::Of(node.seat));
        node.sequence = last;
        let Publisher { stream, chance, .. } = &mut self.publishers[p];
        let template = &stream.template;
        let destination = stream.destination;
        let incoming = Incoming {
            id: DeliveryId::numbered(number, Draw(number.get().wrapping_mul(0x9E37_79B9_7F4A_7C15))),
            sequence: number.get(),
            event_type: template.event_type.clone(),
            occurred_at: None,
            expires_at: None,
            ttl: template.ttl,
            deliver_at: template.deliver_after.map(|wait| now + wait),
            ordering_key: template.keys.map(|keys| Arc::from(format!("key-{}", chance.below(keys)))),
            priority: template.priority,
        };
        let delivery = accept(now, incoming, &self.setup.world.destinations[destination].policy, &template.terms);
        self.watch.oracles.order.published(number.get(), at);
        let lane = self.lane_id(destination);
        self.write(n, Work::Accept(Accepted { publisher: p, lane, delivery }));
    }

    /// What was accepted is answered when its millisecond is over on every node's clock.
    pub(super) fn past(&mut self, n: usize, accepted: Accepted) {
        let made_at = Sequence::from_stored(accepted.delivery.place.sequence).made_at();
        let (earliest, _) = self.nodes[n].clock.between(self.us, self.database_micros());
        if earliest <= made_at {
            return self.plan_at_node(n, self.us + 1_000, Arrival::Past(accepted));
        }
        let Accepted { publisher, lane, delivery } = accepted;
        self.nodes[n].asking.remove(&publisher);
        self.finish_closing(n);
        let travel = self.travel();
        self.plan(self.us + travel, Event::Told { publisher, lane, place: delivery.place });
    }

    pub(super) fn told(&mut self, p: usize, lane: LaneId, place: Place) {
        self.watch.oracles.order.told(lane, place, self.us);
        self.watch.counts.published += 1;
        self.plan_publication(p, self.us);
    }

    /// No answer, or a bad one: it publishes again.
    pub(super) fn publisher_failed(&mut self, n: usize, p: usize) {
        self.nodes[n].asking.remove(&p);
        let wait = 100_000 + self.publishers[p].chance.below(300_000).cast_signed();
        self.plan(self.us + wait, Event::Publish(p));
    }
}
