//! Acceptance: everything is checked before anything is written, so that one request that is refused undoes nothing of
//! another in the same transaction.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};
use tidegate_core::delivery::Delivery;
use tidegate_core::id::EventId;
use tidegate_core::time::Timestamp;

use super::Writer;
use crate::AccountNo;
use crate::codec::{self, maybe_ms};
use crate::counts::Belonging;
use crate::event::{Accepted, ExternalId, IdempotencyKey, Item, NewEvent, REMEMBERED};
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;
use crate::work::Accepting;

/// External ids that this request itself brings: account, type, id.
type Brought<'a> = HashMap<(AccountNo, i64, &'a str), Named>;

/// The event that has an external id.
#[derive(Clone, Copy)]
struct Named {
    id: EventId,
    hash: [u8; 32],
    /// How many destinations it went to.
    routed: Option<u32>,
}

impl Writer<'_> {
    pub(super) fn accept(&mut self, accepting: &Accepting) -> Result<Accepted, Failure> {
        let accept = &accepting.accept;
        let now = accept.now;
        self.shared.saw(now);
        let key = accept.idempotency.as_ref().map(|(key, _)| key);
        if let Some(known) = key.map(|key| self.known_key(key, now)).transpose()?.flatten() {
            return Ok(known);
        }
        let items = match self.check_external_ids(&accept.events, now)? {
            Checked::Items(items) => items,
            Checked::Conflict { index, first } => return Ok(Accepted::Conflict { index, first }),
        };
        for (event, item) in accept.events.iter().zip(&items) {
            if matches!(item, Item::New(_)) {
                self.add_event(event, now)?;
            }
        }
        if let Some((key, render)) = &accept.idempotency {
            self.keep_key(key, &render(&items), now)?;
        }
        Ok(Accepted::Stored(items))
    }

    /// What was answered under this key, unless that is too long ago.
    fn known_key(&self, key: &IdempotencyKey, now: Timestamp) -> Result<Option<Accepted>, Failure> {
        let found = self
            .connection
            .prepare_cached(crate::sql::ANSWERED.sqlite)?
            .query_row(params![key.account.0, key.endpoint, key.key], |row| {
                Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, i64>(2)?))
            })
            .optional()?;
        Ok(found.and_then(|(hash, answer, at)| match codec::time(at) + REMEMBERED > now {
            false => None,
            true if hash == key.body_hash => Some(Accepted::Again(answer)),
            true => Some(Accepted::KeyReused),
        }))
    }

    fn keep_key(&self, key: &IdempotencyKey, answer: &[u8], now: Timestamp) -> Result<(), Failure> {
        self.connection.prepare_cached(sql::KEEP_IDEMPOTENCY_KEY)?.execute(params![
            key.account.0,
            key.endpoint,
            key.key,
            key.body_hash,
            answer,
            now.as_millis()
        ])?;
        Ok(())
    }

    fn check_external_ids(&mut self, events: &[NewEvent], now: Timestamp) -> Result<Checked, Failure> {
        let mut brought = Brought::new();
        let mut items = Vec::with_capacity(events.len());
        for (index, event) in events.iter().enumerate() {
            let id = event.message.id;
            let Some(external) = &event.external_id else {
                items.push(Item::New(id));
                continue;
            };
            let type_no = self.intern.event_type(self.connection, &event.message.event_type)?;
            let name = (event.account, type_no, &*external.id);
            let known = match brought.get(&name) {
                Some(known) => Some(*known),
                None => self.known_external_id(event.account, type_no, external, now)?,
            };
            match known {
                None => {
                    let routed = u32::try_from(event.deliveries.len()).ok();
                    brought.insert(name, Named { id, hash: external.payload_hash, routed });
                    items.push(Item::New(id));
                }
                Some(Named { id: first, hash, routed }) if hash == external.payload_hash => {
                    items.push(Item::Duplicate { first, routed });
                }
                Some(Named { id: first, .. }) => return Ok(Checked::Conflict { index, first }),
            }
        }
        Ok(Checked::Items(items))
    }

    fn known_external_id(
        &self,
        account: AccountNo,
        type_no: i64,
        external: &ExternalId,
        now: Timestamp,
    ) -> Result<Option<Named>, Failure> {
        let found = self
            .connection
            .prepare_cached(sql::FIND_EXTERNAL_ID)?
            .query_row(params![account.0, external.id, type_no], |row| {
                let id = codec::id(row.get(0)?, row.get(1)?);
                let named = Named { id, hash: row.get(2)?, routed: Some(row.get(4)?) };
                Ok((named, codec::time(row.get(3)?)))
            })
            .optional()?;
        Ok(found.filter(|(_, at)| *at + REMEMBERED > now).map(|(named, _)| named))
    }

    fn add_event(&mut self, event: &NewEvent, now: Timestamp) -> Result<(), Failure> {
        let message = &event.message;
        let type_no = self.intern.event_type(self.connection, &message.event_type)?;
        let event_seq = codec::seq(message.id.sequence());
        let (body_kind, content_type) = codec::body_columns(&message.body);
        self.hot.accept_event.execute(params![
            event_seq,
            codec::salt(message.id),
            event.account.0,
            type_no,
            message.accepted_at.as_millis(),
            event.occurred_at.as_millis(),
            maybe_ms(event.expires_at),
            maybe_ms(event.deliver_at),
            event.priority.get(),
            event.ordering_key,
            event.external_id.as_ref().map(|external| &*external.id),
            event.external_id.as_ref().map(|external| external.payload_hash),
            event.deliveries.first().map(|(_, first)| codec::seq(first.id.sequence())),
            codec::length(event.deliveries.len()),
            body_kind,
            content_type,
            &message.payload[..],
        ])?;
        self.counts.given(event_seq);
        for (destination, delivery) in &event.deliveries {
            self.add_delivery(delivery, &Belonging::routed(event, *destination, type_no, now))?;
        }
        Ok(())
    }

    pub(super) fn add_delivery(&mut self, delivery: &Delivery, belonging: &Belonging) -> Result<(), Failure> {
        let seq = codec::seq(delivery.id.sequence());
        let status = codec::status_columns(&delivery.status);
        let plan_no = self.intern.plan(self.connection, &delivery.plan)?;
        self.hot.accept_delivery.execute(params![
            seq,
            codec::salt(delivery.id),
            belonging.event_seq,
            belonging.account.0,
            belonging.destination.0,
            belonging.type_no,
            plan_no,
            delivery.priority.get(),
            delivery.place.occurred_at.as_millis(),
            delivery.accepted_at.as_millis(),
            maybe_ms(delivery.expires_at),
            delivery.too_old_at.as_millis(),
            delivery.ordering_key,
            codec::length(belonging.bytes),
            belonging.replay_of.map(codec::bits),
            delivery.attempts_made,
            delivery.attempts_used,
            status.stage,
            status.retry_at,
            status.retry_reason,
            status.end_code,
            (status.stage != 0).then_some(belonging.now.as_millis()),
        ])?;
        self.file_delivery(belonging.destination, seq)?;
        self.counts.given(seq);
        self.counts.accepted(belonging, &delivery.status);
        Ok(())
    }
}

enum Checked {
    Items(Vec<Item>),
    Conflict { index: usize, first: EventId },
}
