//! The second bundle: everything that is inserted, the counts, and the commit.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::delivery::Delivery;
use tidegate_core::time::Timestamp;

use super::accept::Known;
use super::record::Outcome;
use super::results::LaneRow;
use super::{Answer, Bundle, Stopped, Writer};
use crate::catalogue::AuditEntry;
use crate::cluster::OrderNo;
use crate::codec::{self, count, length, maybe_ms};
use crate::counts::{Belonging, Totals};
use crate::event::{Accepted, Item, NewEvent};
use crate::job::Job;
use crate::postgres::failure::Failure;
use crate::postgres::sql;
use crate::postgres::value::{Rows, row, typed};
use crate::source::{Value, params};
use crate::sql::{ADD_AUDIT_ENTRY, PUT_JOB};
use crate::work::{Done, PROMOTED, Work};

/// Where the answers to promotions will be, by the place of what asked for them.
pub(super) struct Promoted(BTreeMap<usize, usize>);

/// Asks for what came due to be made ready.
pub(super) fn promote(bundle: &mut Bundle<'_>, group: &[Work]) -> Promoted {
    let mut places = BTreeMap::new();
    for (place, work) in group.iter().enumerate() {
        if let Work::Promote { destination, now, .. } = work {
            let values = params![destination.0, now.as_millis(), count(PROMOTED)];
            places.insert(place, bundle.add(sql::PROMOTE, typed(values)));
        }
    }
    Promoted(places)
}

impl Promoted {
    pub(super) fn changed(&self, answers: &[Answer], place: usize) -> u64 {
        self.0.get(&place).and_then(|answer| answers.get(*answer)).map_or(0, |answer| answer.changed)
    }
}

/// The rows of new events and deliveries.
struct Added<'a> {
    events: Rows<'a>,
    open: Rows<'a>,
    ended: Rows<'a>,
}

/// What a delivery's row tells of its event.
struct OfEvent<'a> {
    salt: i64,
    deliver_at: Option<i64>,
    external_id: Option<&'a str>,
}

impl Writer {
    /// Writes what the group comes to, and commits. `done` is handed out where nobody knows whether that was done.
    pub(super) fn finish(
        &mut self,
        group: &[Work],
        done: Vec<Done>,
        known: &Known,
        outcome: &Outcome,
        stale: &BTreeSet<u8>,
    ) -> Result<Vec<Done>, Stopped> {
        let added = self.added(group, &done, known)?;
        let results = self.results(group, outcome, stale)?;
        let totals = self.counts.totals();
        let mut second = Bundle::default();
        second.add_rows(sql::DROP_IDEMPOTENCY_KEYS, old_keys(known));
        second.add_rows(sql::KEEP_IDEMPOTENCY_KEYS, known.new_keys());
        second.add_rows(sql::DROP_EXTERNAL_IDS, old_external(known));
        second.add_rows(sql::KEEP_EXTERNAL_IDS, known.new_external());
        second.add_rows(sql::DROP_OUTBOX, known.leaves_outbox());
        second.add_rows(sql::ACCEPT_EVENTS, added.events);
        second.add_rows(sql::ACCEPT_OPEN, added.open);
        second.add_rows(sql::ACCEPT_FINAL, added.ended);
        second.add_rows(sql::ADD_ATTEMPTS, results.attempts);
        second.add_rows(sql::ADD_HOLDS, results.holds);
        second.add_rows(sql::ADD_NOTICES, results.notices);
        let mut lanes = results.lanes;
        for (destination, _, state) in &totals.lanes {
            if let Some(state) = state {
                lanes.entry(*destination).or_default().state = Some(state);
            }
        }
        let mut saved = Rows::of("ibbii");
        for (destination, LaneRow { saved_at, in_flight, state, timeouts }) in lanes {
            saved.push(row![destination.0, state, timeouts, saved_at, in_flight]);
        }
        second.add_rows(sql::SAVE_LANES, saved);
        self.add_bulletin(&mut second, (group, &done), known, stale);
        add_totals(&mut second, &totals, self.slots.seat);
        let node = self.slots.node;
        group.iter().zip(&done).filter_map(job_of).for_each(|job| add_job(&mut second, job, node));
        second.add_fenced(sql::FINISH_ORDERS, node, results.orders);
        group.iter().zip(&done).flat_map(audit_of).for_each(|entry| note(&mut second, entry));
        second.add("commit", Vec::new());
        match second.send(&self.link) {
            Ok(_) => {}
            Err(Failure::Lost(text)) => return Err(Stopped::InDoubt(text, done)),
            Err(failure) => return Err(failure.into()),
        }
        Ok(done)
    }

    fn added<'a>(
        &mut self,
        group: &'a [Work],
        done: &[Done],
        known: &'a Known,
    ) -> Result<Added<'a>, Failure> {
        let common = "iiiiiiiiiiiiitibiiit";
        let mut added = Added {
            events: Rows::of("iiiiiiiiittiiitb"),
            open: Rows::of(&format!("{common}ii")),
            ended: Rows::of(&format!("{common}iti")),
        };
        for (work, done) in group.iter().zip(done) {
            match (work, done) {
                (Work::Accept(accepting), Done::Accepted(Accepted::Stored(items))) => {
                    self.shared.saw(accepting.accept.now);
                    let events = accepting.accept.events.iter().zip(items);
                    for (event, _) in events.filter(|(_, item)| matches!(item, Item::New(_))) {
                        self.add_event(event, accepting.accept.now, &mut added)?;
                    }
                }
                (Work::Replays { replays, .. }, Done::Replayed(_)) => {
                    for replay in replays {
                        let Some(event) = known.replayed_event(replay.event) else { continue };
                        let type_no = self.intern.event_type(replay.delivery.event_type.as_str())?;
                        let belonging = Belonging::replayed(replay, event.account, type_no, event.bytes);
                        let of = OfEvent {
                            salt: codec::salt(replay.event),
                            deliver_at: event.deliver_at,
                            external_id: event.external_id.as_deref(),
                        };
                        self.add_delivery(&replay.delivery, &belonging, &of, &mut added)?;
                    }
                }
                _ => {}
            }
        }
        Ok(added)
    }

    fn add_event<'a>(
        &mut self,
        event: &'a NewEvent,
        now: Timestamp,
        added: &mut Added<'a>,
    ) -> Result<(), Failure> {
        let message = &*event.message;
        let type_no = self.intern.event_type(message.event_type.as_str())?;
        let event_seq = codec::seq(message.id.sequence());
        let (body_kind, content_type) = codec::body_columns(&message.body);
        let external_id = event.external_id.as_ref().map(|external| &*external.id);
        added.events.push(row![
            event_seq,
            codec::salt(message.id),
            event.account.0,
            type_no,
            message.accepted_at.as_millis(),
            event.occurred_at.as_millis(),
            maybe_ms(event.expires_at),
            maybe_ms(event.deliver_at),
            i64::from(event.priority.get()),
            event.ordering_key.as_ref(),
            external_id,
            event.deliveries.first().map(|(_, first)| codec::seq(first.id.sequence())),
            length(event.deliveries.len()),
            body_kind,
            content_type,
            &message.payload[..],
        ]);
        self.counts.given(event_seq);
        let of =
            OfEvent { salt: codec::salt(message.id), deliver_at: maybe_ms(event.deliver_at), external_id };
        for (destination, delivery) in &event.deliveries {
            let belonging = Belonging::routed(event, *destination, type_no, now);
            self.add_delivery(delivery, &belonging, &of, added)?;
        }
        Ok(())
    }

    fn add_delivery<'a>(
        &mut self,
        delivery: &'a Delivery,
        belonging: &Belonging,
        of: &OfEvent<'a>,
        added: &mut Added<'a>,
    ) -> Result<(), Failure> {
        let seq = codec::seq(delivery.id.sequence());
        let status = codec::status_columns(&delivery.status);
        let plan_no = self.intern.plan(&delivery.plan)?;
        let common: [Value<'a>; 20] = row![
            seq,
            codec::salt(delivery.id),
            belonging.event_seq,
            of.salt,
            belonging.account.0,
            belonging.destination.0,
            belonging.type_no,
            plan_no,
            i64::from(delivery.priority.get()),
            delivery.place.occurred_at.as_millis(),
            delivery.accepted_at.as_millis(),
            maybe_ms(delivery.expires_at),
            delivery.too_old_at.as_millis(),
            delivery.ordering_key.as_ref(),
            length(belonging.bytes),
            belonging.replay_of.map(codec::bits),
            delivery.attempts_made,
            delivery.attempts_used,
            of.deliver_at,
            of.external_id,
        ];
        match status.end_code {
            None => added.open.push_all(common.into_iter().chain(row![status.retry_at, status.retry_reason])),
            Some(code) => {
                let end = row![status.stage, code, belonging.now.as_millis()];
                added.ended.push_all(common.into_iter().chain(end));
            }
        }
        self.counts.given(seq);
        self.counts.accepted(belonging, &delivery.status);
        Ok(())
    }
}

fn old_keys(known: &Known) -> Rows<'_> {
    let mut rows = Rows::of("itt");
    known.old_keys.iter().for_each(|(account, endpoint, key)| rows.push(row![*account, endpoint, key]));
    rows
}

fn old_external(known: &Known) -> Rows<'_> {
    let mut rows = Rows::of("iit");
    known.old_external.iter().for_each(|(account, type_no, id)| rows.push(row![*account, *type_no, id]));
    rows
}

fn add_totals(bundle: &mut Bundle<'_>, totals: &Totals, seat: i64) {
    let mut lanes = Rows::of("iiiiiiiiiiiii");
    for (destination, lane, _) in &totals.lanes {
        let start = row![destination.0, lane.account.0, lane.open, lane.bytes, lane.running.hour];
        lanes.push_all(start.into_iter().chain(lane.running.tally.columns().map(Value::Integer)));
    }
    bundle.add_fenced(sql::SAVE_LANE_COUNTS, seat, lanes);
    let mut accounts = Rows::of("iiiiiiiiii");
    for (account, running) in &totals.accounts {
        let start = row![account.0, running.hour];
        accounts.push_all(start.into_iter().chain(running.tally.columns().map(Value::Integer)));
    }
    bundle.add_fenced(sql::SAVE_ACCOUNT_TALLIES, seat, accounts);
    let mut hours = Rows::of("iiiiiiiiiii");
    for (owner, running) in &totals.hours {
        let (owner, no) = owner.columns();
        let start = row![owner, no, running.hour];
        hours.push_all(start.into_iter().chain(running.tally.columns().map(Value::Integer)));
    }
    bundle.add_rows(sql::ADD_HOURS, hours);
}

/// Where the answers to new orders will be, by the place of what asked for them.
pub(super) struct Orders(BTreeMap<usize, usize>);

/// Asks for orders to be kept.
pub(super) fn post_orders<'a>(bundle: &mut Bundle<'a>, group: &'a [Work]) -> Orders {
    let mut places = BTreeMap::new();
    for (place, work) in group.iter().enumerate() {
        if let Work::PostOrder { destination, body, .. } = work {
            places.insert(place, bundle.add(sql::POST_ORDER, typed(params![destination.0, body])));
        }
    }
    Orders(places)
}

impl Orders {
    pub(super) fn order(&self, answers: &[Answer], place: usize) -> Result<Done, Failure> {
        let answer = self.0.get(&place).and_then(|answer| answers.get(*answer));
        let number = answer.and_then(|answer| answer.rows.first()).map(|row| row.get::<_, i64>(0));
        let order = number.map(|number| Done::Posted(OrderNo(codec::uncount(number))));
        order.ok_or_else(|| Failure::Refused("an order got no number".to_owned()))
    }
}

/// Jobs whose progress is in the group.
pub(super) fn jobs_worked_at(group: &[Work]) -> Rows<'static> {
    let mut jobs = Rows::of("b");
    for work in group {
        if let Work::Replays { job: Some(job), .. } | Work::PutJob { job, .. } = work {
            jobs.push(row![codec::bits(job.id)]);
        }
    }
    jobs
}

/// The job whose progress a thing brings, unless its worker has lost it.
const fn job_of<'g>((work, done): (&'g Work, &Done)) -> Option<&'g Job> {
    match (work, done) {
        (_, Done::Lost) => None,
        (Work::Replays { job: Some(job), .. } | Work::PutJob { job, .. }, _) => Some(job),
        _ => None,
    }
}

fn add_job<'a>(bundle: &mut Bundle<'a>, job: &'a Job, node: i64) {
    let values: Vec<_> = codec::job_columns(job).into_iter().chain([node.into()]).collect();
    bundle.add(PUT_JOB.postgres, typed(&values));
}

/// What the audit log gets with a thing, unless nothing came of it.
fn audit_of<'g>((work, done): (&'g Work, &Done)) -> &'g [AuditEntry] {
    if matches!(done, Done::Lost) { &[] } else { work.audit() }
}

fn note<'a>(bundle: &mut Bundle<'a>, entry: &'a AuditEntry) {
    bundle.add(ADD_AUDIT_ENTRY.postgres, typed(&codec::audit_columns(entry)));
}
