//! What a group has for other nodes, written in its own commit: a node that holds all slots has nothing but orders and changes
//! of what owners asked for, which are rare.

use std::collections::BTreeSet;

use tidegate_core::delivery::{Delivery, Status};

use super::accept::Known;
use super::{Bundle, Writer};
use crate::DestinationNo;
use crate::catalogue::Changed;
use crate::cluster::OrderNo;
use crate::codec::{self, length};
use crate::event::{Accepted, Item};
use crate::postgres::slots::slot;
use crate::postgres::sql;
use crate::postgres::value::{Rows, row, typed};
use crate::source::params;
use crate::work::{Done, Work};

/// What others are told.
#[derive(Default)]
struct Bulletin {
    /// Deliveries for slots of other nodes.
    deliveries: Vec<(i64, DestinationNo)>,
    /// Bytes of what they send.
    bytes: i64,
    orders: Vec<OrderNo>,
    catalogue: bool,
}

impl Writer {
    /// Adds what the group has for others, if there is anything.
    pub(super) fn add_bulletin(
        &mut self,
        bundle: &mut Bundle<'_>,
        (group, done): (&[Work], &[Done]),
        known: &Known,
        stale: &BTreeSet<u8>,
    ) {
        let foreign = |destination: DestinationNo| {
            self.slots.is_foreign(destination) || stale.contains(&slot(destination))
        };
        let mut bulletin = Bulletin::default();
        for (work, done) in group.iter().zip(done) {
            match (work, done) {
                (Work::Accept(accepting), Done::Accepted(Accepted::Stored(items))) => {
                    let events = accepting.accept.events.iter().zip(items);
                    for (event, _) in events.filter(|(_, item)| matches!(item, Item::New(_))) {
                        let before = bulletin.deliveries.len();
                        let deliveries = event.deliveries.iter().map(|(to, delivery)| (*to, delivery));
                        bulletin.deliver(deliveries, foreign);
                        if bulletin.deliveries.len() > before {
                            bulletin.bytes += length(event.message.payload.len());
                        }
                    }
                }
                (Work::Replays { replays, .. }, Done::Replayed(kept)) => {
                    let kept = replays.iter().zip(kept).filter(|(_, kept)| **kept).map(|(replay, _)| replay);
                    for replay in kept.filter(|replay| foreign(replay.destination)) {
                        bulletin.deliver([(replay.destination, &replay.delivery)].into_iter(), foreign);
                        let event = known.replayed_event(replay.event);
                        bulletin.bytes += event.map_or(0, |event| length(event.bytes));
                    }
                }
                (_, Done::Posted(order)) => bulletin.orders.push(*order),
                (Work::Change { .. }, Done::Changed(Changed::Done { .. })) => bulletin.catalogue = true,
                _ => {}
            }
        }
        self.told = !bulletin.deliveries.is_empty() || !bulletin.orders.is_empty() || bulletin.catalogue;
        self.ordered.clone_from(&bulletin.orders);
        if self.told {
            bulletin.add(bundle, self.slots.seat, self.groups + 1);
        }
    }
}

impl Bulletin {
    fn deliver<'d>(
        &mut self,
        deliveries: impl Iterator<Item = (DestinationNo, &'d Delivery)>,
        foreign: impl Fn(DestinationNo) -> bool,
    ) {
        let open = deliveries.filter(|(destination, delivery)| {
            !matches!(delivery.status, Status::Final(_)) && foreign(*destination)
        });
        let numbers = open.map(|(destination, delivery)| (codec::seq(delivery.id.sequence()), destination));
        self.deliveries.extend(numbers);
    }

    fn add(self, bundle: &mut Bundle<'_>, seat: i64, groups: i64) {
        let mut named = Rows::of("ii");
        self.deliveries.iter().for_each(|(number, to)| named.push(row![*number, to.0]));
        let mut orders = Rows::of("i");
        self.orders.iter().for_each(|order| orders.push(row![codec::count(order.0)]));
        let values = typed(params![seat, groups, self.bytes, self.catalogue]);
        let values = values.into_iter().chain(named.values()).chain(orders.values());
        bundle.add(sql::ADD_BULLETIN, values.collect());
    }
}
