//! From an event as it was written to one that can be accepted: checked, routed, with its deliveries.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tidegate_core::delivery::{Delivery, End, Late, Priority, Status};
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::limits;
use tidegate_core::sequence::Sequence;
use tidegate_core::settle::{self, Incoming};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::event::{ExternalId, Message, NewEvent};
use tidegate_store::{AccountNo, DestinationNo};

use super::answer::Published;
use super::payload;
use super::wire::{EventBody, Text};
use crate::api::App;
use crate::api::error::ApiError;
use crate::catalogue::{DestinationEntry, Routing};

/// The longest `ordering_key` and `external_event_id`, in characters.
const MAX_ORDERING_KEY: usize = 256;
const MAX_EXTERNAL_ID: usize = 255;
/// Destinations that one event may name.
const MAX_NAMED: usize = 1_000;

/// An event that can be accepted, and what its publisher will be told.
pub(super) struct Drafted {
    pub(super) event: NewEvent,
    pub(super) answer: Published,
}

/// Builds the events of one request, all at one time.
pub(super) struct Builder<'a> {
    app: &'a App,
    account: AccountNo,
    now: Timestamp,
}

/// The times of an event, read.
struct Times {
    occurred_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    ttl: Option<Millis>,
    deliver_at: Option<Timestamp>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(app: &'a App, account: AccountNo) -> Self {
        Self { app, account, now: app.engine.now().wall }
    }

    /// `body` is what the payload may be shared with.
    pub(super) fn draft(&self, event: &EventBody<'_>, body: &Bytes) -> Result<Drafted, ApiError> {
        let routing = self.app.catalogue.routing(self.account, &event.event_type)?;
        let times = self.times(event)?;
        let expires_at = self.expiry(&times, &routing);
        check_deliver_at(&times, expires_at)?;
        let (payload, kind) = payload::take(event.payload, event.content_type.as_ref(), body)?;
        let ordering_key = key("ordering_key", event.ordering_key.as_ref(), MAX_ORDERING_KEY)?;
        let external_id = key("external_event_id", event.external_event_id.as_ref(), MAX_EXTERNAL_ID)?;
        let priority =
            event.priority.map(Priority::new).transpose()?.or(routing.priority).unwrap_or_default();
        let named = event.destination_ids.as_deref().map(|names| self.named(names)).transpose()?;
        let destinations = named.as_deref().unwrap_or(&routing.destinations);

        let first = self.app.engine.number(1 + destinations.len() as u64);
        let id = EventId::numbered(first, self.app.engine.draw());
        let template = Incoming {
            occurred_at: times.occurred_at,
            expires_at: times.expires_at,
            ttl: times.ttl,
            deliver_at: times.deliver_at,
            ordering_key: ordering_key.clone(),
            priority,
            ..Incoming::new(DeliveryId::from_bits(0), 0, routing.event_type.clone())
        };
        let deliveries = self.deliveries(first, destinations, &template, &routing);
        let expired = expires_at.is_some_and(|expiry| self.now >= expiry);
        let mut answer = Published::new(id, deliveries.len(), expired);
        if !deliveries.is_empty() && deliveries.iter().all(|(_, delivery)| scheduled_too_late(delivery)) {
            answer.status = "expired";
        }
        let external_id =
            external_id.map(|id| ExternalId { id, payload_hash: Sha256::digest(&payload).into() });
        let message = Message {
            id,
            event_type: routing.event_type.clone(),
            accepted_at: self.now,
            payload,
            body: kind,
        };
        let event = NewEvent {
            account: self.account,
            message: Arc::new(message),
            occurred_at: times.occurred_at.map_or(self.now, |at| at.min(self.now)),
            expires_at,
            deliver_at: times.deliver_at,
            ordering_key,
            priority,
            external_id,
            deliveries,
        };
        Ok(Drafted { event, answer })
    }

    fn deliveries(
        &self,
        first: Sequence,
        destinations: &[Arc<DestinationEntry>],
        template: &Incoming,
        routing: &Routing,
    ) -> Vec<(DestinationNo, Delivery)> {
        let numbers = first.get() + 1..;
        destinations
            .iter()
            .zip(numbers)
            .map(|(destination, number)| {
                let id = DeliveryId::numbered(Sequence::from_stored(number), self.app.engine.draw());
                let incoming = Incoming { id, sequence: number, ..template.clone() };
                (destination.row.no, settle::accept(self.now, incoming, &destination.policy, &routing.terms))
            })
            .collect()
    }

    /// Exactly these destinations, each once.
    fn named(&self, names: &[Text<'_>]) -> Result<Vec<Arc<DestinationEntry>>, ApiError> {
        if names.is_empty() || names.len() > MAX_NAMED {
            let message = format!("`destination_ids` holds {}; allowed: 1 to {MAX_NAMED}", names.len());
            return Err(ApiError::invalid("destination_ids", message));
        }
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let Some(entry) = self.app.catalogue.find_destination(self.account, &name.0) else {
                let field = format!("destination_ids[{index}]");
                let message = format!("`{field}`: there is no such destination in this account");
                return Err(ApiError::invalid(field, message));
            };
            if seen.insert(entry.row.no) {
                found.push(entry);
            }
        }
        Ok(found)
    }

    fn times(&self, event: &EventBody<'_>) -> Result<Times, ApiError> {
        let ttl = event.ttl_seconds.map(|seconds| {
            tidegate_core::invalid::check_range("ttl_seconds", seconds, 1, limits::MAX_TTL.get() / 1_000)
        });
        Ok(Times {
            occurred_at: time("occurred_at", event.occurred_at.as_ref())?,
            expires_at: time("expires_at", event.expires_at.as_ref())?,
            ttl: ttl.transpose()?.map(Millis::seconds),
            deliver_at: self.scheduled(event.deliver_at.as_ref())?,
        })
    }

    /// When it is to be sent: only so far ahead. (An expiry may lie as far ahead as anybody likes: it ends by its age.)
    fn scheduled(&self, text: Option<&Text<'_>>) -> Result<Option<Timestamp>, ApiError> {
        const FIELD: &str = "deliver_at";
        let most = limits::MAX_DELIVER_AHEAD;
        match time(FIELD, text)? {
            Some(at) if at > self.now + most => {
                Err(ApiError::invalid(FIELD, format!("`{FIELD}` is {at}; allowed: at most {most} ahead")))
            }
            at => Ok(at),
        }
    }

    /// The earliest of what event and type say, as [`settle::accept`] finds it for each delivery.
    fn expiry(&self, times: &Times, routing: &Routing) -> Option<Timestamp> {
        let after = |ttl: Millis| self.now + ttl;
        [times.expires_at, times.ttl.map(after), routing.terms.type_ttl.map(after)]
            .into_iter()
            .flatten()
            .min()
    }
}

/// An event that is scheduled for a time at which it is stale would never be sent: its publisher did not mean that.
fn check_deliver_at(times: &Times, expires_at: Option<Timestamp>) -> Result<(), ApiError> {
    match (times.deliver_at, expires_at) {
        (Some(at), Some(expiry)) if at >= expiry => Err(ApiError::invalid(
            "deliver_at",
            format!("`deliver_at` is {at}, but the event expires at {expiry}"),
        )),
        _ => Ok(()),
    }
}

fn time(field: &'static str, text: Option<&Text<'_>>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let refused = || {
        ApiError::invalid(field, format!("`{field}` must be an RFC 3339 time such as 2026-04-23T14:32:00Z"))
    };
    Timestamp::parse(&text.0).map(Some).ok_or_else(refused)
}

fn key(field: &'static str, text: Option<&Text<'_>>, most: usize) -> Result<Option<Arc<str>>, ApiError> {
    let Some(Text(text)) = text else { return Ok(None) };
    let fine = !text.is_empty() && text.chars().nth(most).is_none() && !text.chars().any(char::is_control);
    if fine {
        return Ok(Some(text.as_ref().into()));
    }
    Err(ApiError::invalid(
        field,
        format!("`{field}` must be 1 to {most} characters, none of them a control character"),
    ))
}

/// Whether it is due so late that nothing could be sent before it expires: then it is over already.
pub(super) fn scheduled_too_late(delivery: &Delivery) -> bool {
    matches!(delivery.status, Status::Final(End::Expired(Late::Behind(_))))
}
