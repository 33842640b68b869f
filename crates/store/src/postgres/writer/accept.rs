//! Acceptance: all keys and external ids of a group are looked up at once, then each request is judged in its turn, with what
//! those before it in the same group have brought.

use std::collections::{HashMap, HashSet};

use tidegate_core::delivery::Delivery;
use tidegate_core::id::EventId;
use tidegate_core::time::Timestamp;

use super::{Bundle, rows};
use crate::codec;
use crate::event::{Accepted, Item, NewEvent, NewReplay, REMEMBERED};
use crate::postgres::failure::Failure;
use crate::postgres::intern::Intern;
use crate::postgres::link::Answer;
use crate::postgres::sql;
use crate::postgres::value::{Rows, row};
use crate::work::{Accepting, Work};
use crate::{AccountNo, DestinationNo};

/// The events of a request.
pub(super) fn new_events(work: &Work) -> &[NewEvent] {
    if let Work::Accept(accepting) = work { &accepting.accept.events } else { &[] }
}

/// The deliveries that a thing adds, and where they go.
fn new_places(work: &Work) -> impl Iterator<Item = (DestinationNo, &Delivery)> {
    let replays = if let Work::Replays { replays, .. } = work { &replays[..] } else { &[] };
    let accepted = new_events(work).iter().flat_map(|event| &event.deliveries);
    let accepted = accepted.map(|(destination, delivery)| (*destination, delivery));
    accepted.chain(replays.iter().map(|replay| (replay.destination, &replay.delivery)))
}

/// The deliveries that a thing adds.
pub(super) fn new_deliveries(work: &Work) -> impl Iterator<Item = &Delivery> {
    new_places(work).map(|(_, delivery)| delivery)
}

/// Where they go.
pub(super) fn new_destinations(work: &Work) -> impl Iterator<Item = DestinationNo> {
    new_places(work).map(|(destination, _)| destination)
}

/// The event types that a thing names.
pub(super) fn new_types(work: &Work) -> impl Iterator<Item = &str> {
    let events = new_events(work).iter().map(|event| event.message.event_type.as_str());
    events.chain(new_deliveries(work).map(|delivery| delivery.event_type.as_str()))
}

/// An idempotency key: account, endpoint, key.
type Key = (u32, String, String);
/// An external id: account, type, id.
type External = (u32, i64, String);

/// Where the answers to the questions of a group will be.
pub(super) struct LookedUp {
    keys: Option<usize>,
    external: Option<usize>,
    replayed: Option<usize>,
    outbox: Option<usize>,
}

impl LookedUp {
    /// Asks for the keys, external ids and replayed events of a group.
    pub(super) fn ask<'a>(
        bundle: &mut Bundle<'a>,
        group: &'a [Work],
        intern: &Intern,
    ) -> Result<Self, Failure> {
        let (mut keys, mut external) = (Rows::of("itt"), Rows::of("iit"));
        let (mut replayed, mut outbox) = (Rows::of("i"), Rows::of("i"));
        for work in group {
            if let Some(number) = outbox_of(work) {
                outbox.push(row![number]);
            }
            if let Work::Accept(accepting) = work
                && let Some((account, endpoint, key)) = key_of(accepting)
            {
                keys.push(row![account, endpoint, key]);
            }
            for event in new_events(work) {
                if let Some((account, type_no, id)) = external_of(event, intern)? {
                    external.push(row![account, type_no, id]);
                }
            }
            if let Work::Replays { replays, .. } = work {
                replays.iter().for_each(|replay| replayed.push(row![codec::seq(replay.event.sequence())]));
            }
        }
        Ok(Self {
            keys: bundle.add_rows(sql::FIND_IDEMPOTENCY_KEYS, keys),
            external: bundle.add_rows(sql::FIND_EXTERNAL_IDS, external),
            replayed: bundle.add_rows(sql::FIND_REPLAYED_EVENTS, replayed),
            outbox: bundle.add_rows(sql::LOCK_OUTBOX, outbox),
        })
    }

    pub(super) fn read(self, answers: &[Answer]) -> Known {
        let keys = rows(answers, self.keys).map(|row| {
            let key = (number(row.get(0)), row.get(1), row.get(2));
            (
                key,
                KnownKey { hash: row.get(3), answer: row.get(4), at: codec::time(row.get(5)), stored: true },
            )
        });
        let external = rows(answers, self.external).map(|row| {
            let id = codec::id(row.get(3), row.get(4));
            let routed = row.get::<_, Option<i32>>(7).and_then(|routed| u32::try_from(routed).ok());
            let known = KnownId { id, hash: row.get(5), routed, at: codec::time(row.get(6)), stored: true };
            ((number(row.get(0)), i64::from(row.get::<_, i32>(1)), row.get(2)), known)
        });
        let replayed = rows(answers, self.replayed).map(|row| {
            let event = Replayed {
                account: AccountNo(number(row.get(2))),
                bytes: usize::try_from(row.get::<_, i32>(3)).unwrap_or(0),
                deliver_at: row.get(4),
                external_id: row.get(5),
            };
            (codec::id(row.get(0), row.get(1)), event)
        });
        Known {
            keys: keys.collect(),
            external: external.collect(),
            replayed: replayed.collect(),
            outbox: rows(answers, self.outbox).map(|row| row.get(0)).collect(),
            accepted: Vec::new(),
            old_keys: Vec::new(),
            old_external: Vec::new(),
        }
    }
}

struct KnownKey {
    hash: Vec<u8>,
    answer: Vec<u8>,
    at: Timestamp,
    /// In the database, not only in this group.
    stored: bool,
}

struct KnownId {
    id: EventId,
    hash: Vec<u8>,
    /// How many destinations it went to.
    routed: Option<u32>,
    at: Timestamp,
    stored: bool,
}

/// An event that is there to be replayed.
pub(super) struct Replayed {
    pub(super) account: AccountNo,
    pub(super) bytes: usize,
    pub(super) deliver_at: Option<i64>,
    pub(super) external_id: Option<String>,
}

/// What is known of the keys and ids of a group.
pub(super) struct Known {
    keys: HashMap<Key, KnownKey>,
    external: HashMap<External, KnownId>,
    replayed: HashMap<EventId, Replayed>,
    /// Those that count no longer and are used again.
    pub(super) old_keys: Vec<Key>,
    pub(super) old_external: Vec<External>,
    /// What is still in the outbox.
    outbox: HashSet<i64>,
    /// What leaves it with this group.
    accepted: Vec<i64>,
}

impl Known {
    /// What becomes of one request. What it brings is known to those after it.
    pub(super) fn accept(&mut self, accepting: &Accepting, intern: &Intern) -> Result<Accepted, Failure> {
        let now = accepting.accept.now;
        // One that is twice in the group is there for the first only.
        if accepting.accept.outbox.is_some_and(|number| !self.outbox.contains(&codec::count(number))) {
            return Ok(Accepted::Taken);
        }
        let key =
            key_of(accepting).map(|(account, endpoint, key)| (account, endpoint.to_owned(), key.to_owned()));
        if let (Some(key), Some(hash)) = (&key, body_hash(accepting))
            && let Some(known) = self.keys.get(key).filter(|known| known.at + REMEMBERED > now)
        {
            return Ok(match known.hash == hash {
                true => Accepted::Again(known.answer.clone()),
                false => Accepted::KeyReused,
            });
        }
        let items = match self.items(&accepting.accept.events, now, intern)? {
            Ok(items) => items,
            Err(conflict) => return Ok(conflict),
        };
        if let (Some(key), Some((asked, render))) = (key, &accepting.accept.idempotency) {
            let (hash, answer) = (asked.body_hash.to_vec(), render(&items));
            let before = self.keys.insert(key.clone(), KnownKey { hash, answer, at: now, stored: false });
            self.old_keys.extend(before.filter(|before| before.stored).map(|_| key));
        }
        if let Some(number) = accepting.accept.outbox.map(codec::count) {
            self.outbox.remove(&number);
            self.accepted.push(number);
        }
        Ok(Accepted::Stored(items))
    }

    /// What becomes of each event, by its external id; or the first conflict, and then nothing of it is known to others.
    fn items(
        &mut self,
        events: &[NewEvent],
        now: Timestamp,
        intern: &Intern,
    ) -> Result<Result<Vec<Item>, Accepted>, Failure> {
        let mut brought: HashMap<External, KnownId> = HashMap::new();
        let mut items = Vec::with_capacity(events.len());
        for (index, event) in events.iter().enumerate() {
            let id = event.message.id;
            let Some((name, external)) = external_of(event, intern)?.zip(event.external_id.as_ref()) else {
                items.push(Item::New(id));
                continue;
            };
            let name = (name.0, name.1, name.2.to_owned());
            let stored = self.external.get(&name).filter(|known| known.at + REMEMBERED > now);
            match brought.get(&name).or(stored) {
                None => {
                    let (hash, routed) =
                        (external.payload_hash.to_vec(), u32::try_from(event.deliveries.len()).ok());
                    brought.insert(name, KnownId { id, hash, routed, at: now, stored: false });
                    items.push(Item::New(id));
                }
                Some(known) if known.hash == external.payload_hash => {
                    items.push(Item::Duplicate { first: known.id, routed: known.routed });
                }
                Some(known) => return Ok(Err(Accepted::Conflict { index, first: known.id })),
            }
        }
        for (name, known) in brought {
            let before = self.external.insert(name.clone(), known);
            self.old_external.extend(before.filter(|before| before.stored).map(|_| name));
        }
        Ok(Ok(items))
    }

    /// Which of these replays have an event.
    pub(super) fn replayed(&self, replays: &[NewReplay]) -> Vec<bool> {
        replays.iter().map(|replay| self.replayed.contains_key(&replay.event)).collect()
    }

    pub(super) fn replayed_event(&self, event: EventId) -> Option<&Replayed> {
        self.replayed.get(&event)
    }

    /// What leaves the outbox.
    pub(super) fn leaves_outbox(&self) -> Rows<'static> {
        let mut found = Rows::of("i");
        self.accepted.iter().for_each(|number| found.push(row![*number]));
        found
    }

    /// Keys that this group brings.
    pub(super) fn new_keys(&self) -> Rows<'_> {
        let mut found = Rows::of("ittbbi");
        let mut new: Vec<_> = self.keys.iter().filter(|(_, known)| !known.stored).collect();
        new.sort_unstable_by_key(|(key, _)| *key);
        for ((account, endpoint, key), known) in new {
            found.push(row![*account, endpoint, key, &known.hash, &known.answer, known.at.as_millis()]);
        }
        found
    }

    /// External ids that this group brings.
    pub(super) fn new_external(&self) -> Rows<'_> {
        let mut found = Rows::of("iitiibi");
        let mut new: Vec<_> = self.external.iter().filter(|(_, known)| !known.stored).collect();
        new.sort_unstable_by_key(|(name, _)| *name);
        for ((account, type_no, id), known) in new {
            let (seq, salt) = (codec::seq(known.id.sequence()), codec::salt(known.id));
            found.push(row![*account, *type_no, id, seq, salt, &known.hash, known.at.as_millis()]);
        }
        found
    }
}

fn outbox_of(work: &Work) -> Option<i64> {
    if let Work::Accept(accepting) = work { accepting.accept.outbox.map(codec::count) } else { None }
}

fn key_of(accepting: &Accepting) -> Option<(u32, &str, &str)> {
    let (key, _) = accepting.accept.idempotency.as_ref()?;
    Some((key.account.0, key.endpoint, &key.key))
}

fn body_hash(accepting: &Accepting) -> Option<[u8; 32]> {
    accepting.accept.idempotency.as_ref().map(|(key, _)| key.body_hash)
}

fn external_of<'a>(event: &'a NewEvent, intern: &Intern) -> Result<Option<(u32, i64, &'a str)>, Failure> {
    let Some(external) = &event.external_id else { return Ok(None) };
    let type_no = intern.event_type(event.message.event_type.as_str())?;
    Ok(Some((event.account.0, type_no, &external.id)))
}

/// An account's number, from its column.
fn number(column: i32) -> u32 {
    u32::try_from(column).unwrap_or(0)
}
