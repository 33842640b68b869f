//! Reads histories into a [`Run`]: producers first, so that what receivers saw can be verified as it is read.

use std::collections::HashMap;
use std::path::Path;

use super::changes::{Change, Timeline};
use super::faults::Faults;
use super::routing::Routing;
use super::{
    Accepted, Attempt, Delivery, Destination, Digest, Ending, Glimpse, MILLI, NEVER, Publication,
    QueueLength, Readiness, Receipt, Run, SECOND, Sample, Secret, Sent, Signed,
};
use crate::history::policy::Envelope;
use crate::history::{
    Api, DeliveryBody, HistoryError, How, Outcome, PollBody, Producer, Receiver, SentEvent, State,
    read_lines, read_world,
};
use crate::names::{Name, Names};
use crate::signature;

/// How long a secret stays valid after it was replaced, where nobody says otherwise.
const OVERLAP_SECONDS: u64 = 86_400;

impl Run {
    /// Reads the histories in `directory`.
    pub fn load(directory: &Path) -> Result<Self, HistoryError> {
        let mut loader = Loader::new(directory)?;
        need(directory, "producer.jsonl", |line| loader.producer(line))?;
        let mut faults = Vec::new();
        read_lines(directory, "faults.jsonl", |line| {
            faults.push(line);
            Ok(())
        })?;
        need(directory, "receiver.jsonl", |line| loader.receiver(line))?;
        read_lines(directory, "api.jsonl", |line| loader.api(line))?;
        read_lines(directory, "resources.jsonl", |line: crate::history::Sample| {
            let node = loader.run.names.name(&line.node);
            loader.run.samples.push(Sample { t: line.t, node, rss_bytes: line.rss_bytes, fds: line.fds });
            Ok(())
        })?;
        let late = loader.run.late();
        loader.run.faults = Faults::new(&mut loader.run.names, faults, late);
        Ok(loader.finish())
    }
}

fn need<T: serde::de::DeserializeOwned>(
    directory: &Path,
    name: &str,
    take: impl FnMut(T) -> Result<(), String>,
) -> Result<(), HistoryError> {
    if read_lines(directory, name, take)? {
        return Ok(());
    }
    let why = std::io::Error::new(std::io::ErrorKind::NotFound, "every run has this file; it is not there");
    Err(HistoryError::Unreadable { file: directory.join(name), why })
}

struct Loader {
    run: Run,
    requests: HashMap<u64, u32>,
    numbers: HashMap<u64, u32>,
    by_receiver: HashMap<String, u32>,
    by_id: HashMap<Name, u32>,
}

impl Loader {
    fn new(directory: &Path) -> Result<Self, HistoryError> {
        let world = read_world(directory)?;
        let mut names = Names::default();
        let (mut by_receiver, mut by_id, mut destinations) = (HashMap::new(), HashMap::new(), Vec::new());
        for (index, described) in (0..).zip(world.destinations) {
            let id = names.name(&described.id);
            let timeline = Timeline::new(described.policy).map_err(|error| HistoryError::Line {
                file: directory.join("world.json"),
                line: 1,
                what: format!("the policy of {}: {error}", described.name),
            })?;
            let always = |key| Secret { key, from: 0, needed_from: NEVER, until: NEVER, replaced_at: NEVER };
            let secrets = described
                .secrets
                .iter()
                .flatten()
                .filter_map(|text| signature::key(text))
                .map(always)
                .collect();
            by_receiver.insert(described.name.clone(), index);
            by_id.insert(id, index);
            destinations.push(Destination { id, name: described.name, timeline, secrets });
        }
        let run = Run {
            seed: world.seed,
            jitter: world.jitter_ms.saturating_mul(MILLI),
            at_rest: world.at_rest,
            mono_to_wall_ms: world.mono_to_wall_ms,
            limits: world.limits,
            by_destination: vec![Vec::new(); destinations.len()],
            destinations,
            names,
            publications: Vec::new(),
            sent: Vec::new(),
            accepted: Vec::new(),
            receipts: Vec::new(),
            by_delivery: Vec::new(),
            faults: Faults::default(),
            deliveries: Vec::new(),
            attempts: Vec::new(),
            glimpses: Vec::new(),
            readiness: Vec::new(),
            queues: Vec::new(),
            samples: Vec::new(),
            accepted_by_name: HashMap::new(),
            deliveries_by_name: HashMap::new(),
            routing: Routing::default(),
            begins: 0,
        };
        Ok(Self { run, requests: HashMap::new(), numbers: HashMap::new(), by_receiver, by_id })
    }

    fn producer(&mut self, line: Producer) -> Result<(), String> {
        match line {
            Producer::Send { t, request, endpoint, key, body_sha256, events } => {
                let index = number(self.run.publications.len());
                if self.requests.insert(request, index).is_some() {
                    return Err(format!("request {request} was sent before"));
                }
                let names = &mut self.run.names;
                let publication = Publication {
                    t,
                    answered: NEVER,
                    request,
                    status: None,
                    key: key.map(|key| names.name(&key)),
                    endpoint: names.name(&endpoint),
                    body: digest(&body_sha256)?,
                    first: number(self.run.sent.len()),
                    count: number(events.len()),
                    ids: 0,
                };
                self.run.publications.push(publication);
                events.iter().try_for_each(|event| self.event(index, event))
            }
            Producer::Answer { t, request, status, ids } => self.answer(t, request, status, &ids),
            Producer::Change { t, answered, destination, patch, action, status } => {
                let change = Change { t, answered, patch, action, status };
                self.change(&destination, &change)
            }
        }
    }

    fn event(&mut self, publication: u32, event: &SentEvent) -> Result<(), String> {
        let to = event.destination_ids.as_ref().map(|ids| {
            let known = |id: &String| self.run.names.find(id).and_then(|id| self.by_id.get(&id)).copied();
            ids.iter()
                .map(|id| known(id).ok_or_else(|| format!("{id} is no destination of this world")))
                .collect()
        });
        let names = &mut self.run.names;
        self.run.sent.push(Sent {
            publication,
            id: None,
            event_type: names.name(&event.event_type),
            sha: digest(&event.sha256)?,
            ordering_key: event.ordering_key.as_deref().map(|key| names.name(key)),
            expires_at_ms: event.expires_at_ms,
            is_scheduled: event.deliver_at_ms.is_some(),
            to: to.transpose()?,
        });
        Ok(())
    }

    fn answer(&mut self, t: u64, request: u64, status: Option<u16>, ids: &[String]) -> Result<(), String> {
        let index = self.requests.get(&request).ok_or_else(|| format!("request {request} was never sent"))?;
        let publication = &mut self.run.publications[*index as usize];
        if publication.answered != NEVER {
            return Err(format!("request {request} was answered before"));
        }
        (publication.answered, publication.status, publication.ids) = (t, status, number(ids.len()));
        if publication.is_accepted() {
            let first = publication.first as usize;
            let events = &mut self.run.sent[first..first + publication.count as usize];
            for (event, id) in events.iter_mut().zip(ids) {
                event.id = Some(self.run.names.name(id));
            }
        }
        Ok(())
    }

    fn change(&mut self, id: &str, change: &Change) -> Result<(), String> {
        let known = self.run.names.find(id).and_then(|id| self.by_id.get(&id));
        let index = *known.ok_or_else(|| format!("{id} is no destination of this world"))?;
        let destination = &mut self.run.destinations[index as usize];
        if change.status.is_some_and(|status| status < 300) {
            rotate(destination, change);
        }
        destination.timeline.change(change).map_err(|error| error.to_string())
    }

    fn receiver(&mut self, line: Receiver) -> Result<(), String> {
        match line {
            Receiver::Request { .. } => self.request(line),
            Receiver::End { t, n, how, status, retry_after } => {
                let index = self.numbers.remove(&n).ok_or_else(|| format!("request {n} is not open"))?;
                let retry_after = retry_after.map(|text| self.run.names.name(&text));
                let receipt = &mut self.run.receipts[index as usize];
                receipt.end = t.max(receipt.t);
                receipt.ending = match how {
                    How::Answered => Ending::Answered,
                    How::Closed => Ending::Closed,
                };
                (receipt.status, receipt.retry_after) = (status.unwrap_or(0), retry_after);
                Ok(())
            }
        }
    }

    fn request(&mut self, line: Receiver) -> Result<(), String> {
        let Receiver::Request {
            t,
            n,
            receiver,
            event_id,
            delivery_id,
            attempt,
            event_type,
            timestamp,
            signature,
            sha256,
            body,
            wall_ms,
            path,
            ..
        } = line
        else {
            return Ok(());
        };
        if self.numbers.insert(n, number(self.run.receipts.len())).is_some() {
            return Err(format!("request {n} came before"));
        }
        let destination = self.by_receiver.get(&receiver).copied();
        let place = destination.map(|index| &self.run.destinations[index as usize]);
        let wrapped = place.is_some_and(|place| {
            place.timeline.phases().iter().any(|phase| phase.policy.envelope == Envelope::Standard)
        });
        let sha = if wrapped { body.as_deref().and_then(payload_in) } else { Some(digest(&sha256)?) };
        let signed = match (place, &body) {
            (Some(place), Some(body)) if !place.secrets.is_empty() => {
                let with = |(bit, secret): (u32, &Secret)| {
                    let signed = signature::is_signed_with(
                        &secret.key,
                        &event_id,
                        timestamp,
                        body.as_bytes(),
                        &signature,
                    );
                    u8::from(signed).checked_shl(bit).unwrap_or(0)
                };
                Signed::With((0..).zip(&place.secrets).map(with).sum())
            }
            _ => Signed::Unknown,
        };
        let true_ms = wall_ms.or_else(|| self.run.true_wall(t));
        let names = &mut self.run.names;
        self.run.receipts.push(Receipt {
            t,
            end: NEVER,
            destination,
            event: names.name(&event_id),
            delivery: names.name(&delivery_id),
            event_type: names.name(&event_type),
            attempt,
            timestamp,
            wall_ms: true_ms,
            sha,
            signed,
            ending: Ending::Open,
            status: 0,
            retry_after: None,
            path: path.map(|path| names.name(&path)),
        });
        Ok(())
    }

    fn api(&mut self, line: Api) -> Result<(), String> {
        match line {
            Api::Event { body } => body.deliveries.iter().for_each(|delivery| self.delivery(delivery)),
            Api::Delivery { body } => self.delivery(&body),
            Api::Attempt { delivery_id, body } => self.run.attempts.push(Attempt {
                delivery: self.run.names.name(&delivery_id),
                number: body.number,
                started_at: body.started_at,
                timeout_ms: body.timeout_ms,
                outcome: body.outcome,
                status: body.status_code,
                counted: body
                    .counted
                    .unwrap_or(!matches!(body.outcome, Outcome::RateLimited | Outcome::Cancelled)),
            }),
            Api::Poll { t, path, status, node, body } => {
                let node = node.map(|node| self.run.names.name(&node));
                self.poll(t, &path, status, node, body);
            }
        }
        Ok(())
    }

    fn delivery(&mut self, body: &DeliveryBody) {
        let names = &mut self.run.names;
        let destination = body.destination_id.as_deref().map(|id| names.name(id));
        let delivery = Delivery {
            id: names.name(&body.id),
            event: names.name(&body.event_id),
            destination: destination.and_then(|id| self.by_id.get(&id)).copied(),
            state: body.status,
            attempts_count: body.attempts_count,
            attempts_used: body.attempts_used,
            max_attempts: body.max_attempts,
            created_at: body.created_at,
            expires_at: body.expires_at,
            finished_at: body.finished_at,
            has_reason: body.final_reason.as_deref().is_some_and(|reason| !reason.is_empty()),
            is_put_aside: body.final_reason.as_deref().is_some_and(|reason| reason.starts_with("put aside")),
            is_replay: body.replay_of.is_some(),
        };
        // The same delivery may be told with its event and on its own.
        let next = number(self.run.deliveries.len());
        let index = *self.run.deliveries_by_name.entry(delivery.id).or_insert(next);
        if index == next {
            self.run.deliveries.push(delivery);
        } else {
            self.run.deliveries[index as usize] = delivery;
        }
    }

    fn poll(&mut self, t: u64, path: &str, status: Option<u16>, node: Option<Name>, body: Option<PollBody>) {
        let path = path.split('?').next().unwrap_or(path);
        if path == "/readyz" {
            return self.run.readiness.push(Readiness { t, node, ready: status == Some(200) });
        }
        let Some(body) = body.filter(|_| status == Some(200)) else { return };
        let body = body.data.map_or_else(|| PollBody { data: None, ..body }, |data| *data);
        if let Some(id) = path.strip_prefix("/v1/deliveries/").filter(|id| !id.contains('/')) {
            let state: Option<State> = body.status.and_then(|status| serde_json::from_value(status).ok());
            if let Some(state) = state {
                let delivery = self.run.names.name(id);
                self.run.glimpses.push(Glimpse { delivery, t, state, attempts_count: body.attempts_count });
            }
        } else if let Some(id) = path.strip_prefix("/v1/destinations/")
            && let Some(destination) = self.run.names.find(id).and_then(|id| self.by_id.get(&id)).copied()
            && let Some(queued) = body.queued_events
        {
            let in_flight = body.inflight.unwrap_or(0);
            self.run.queues.push(QueueLength { t, destination, queued, in_flight });
        }
    }

    fn finish(self) -> Run {
        let mut run = self.run;
        run.receipts.sort_by_key(|receipt| receipt.t);
        for (index, receipt) in (0..).zip(&run.receipts) {
            if let Some(destination) = receipt.destination {
                run.by_destination[destination as usize].push(index);
            }
        }
        let mut by_delivery: Vec<u32> = (0..number(run.receipts.len())).collect();
        by_delivery.sort_by_key(|index| run.receipts[*index as usize].delivery);
        run.by_delivery = by_delivery;
        run.attempts.sort_by_key(|attempt| (attempt.delivery, attempt.number));
        run.glimpses.sort_by_key(|glimpse| (glimpse.delivery, glimpse.t));
        run.readiness.sort_by_key(|readiness| readiness.t);
        run.queues.sort_by_key(|queue| (queue.destination, queue.t));
        run.samples.sort_by_key(|sample| (sample.node, sample.t));
        accept(&mut run);
        run.routing =
            Routing::new(&run.names, &run.destinations, run.sent.iter().map(|sent| sent.event_type));
        let first = run.publications.iter().map(|publication| publication.t);
        run.begins = first.chain(run.receipts.first().map(|receipt| receipt.t)).min().unwrap_or(0);
        run
    }
}

/// Each id once, however often its publication was repeated.
fn accept(run: &mut Run) {
    for (index, sent) in (0..).zip(&run.sent) {
        let Some(id) = sent.id else { continue };
        let publication = &run.publications[sent.publication as usize];
        let (sent_at, known_at) = (publication.t, publication.answered);
        let next = number(run.accepted.len());
        let known = *run.accepted_by_name.entry(id).or_insert(next);
        if known == next {
            run.accepted.push(Accepted { id, sent: index, sent_at, known_at });
        } else {
            let accepted = &mut run.accepted[known as usize];
            accepted.sent_at = accepted.sent_at.min(sent_at);
            accepted.known_at = accepted.known_at.min(known_at);
        }
    }
    let published =
        run.publications.iter().map(|publication| (publication.answered, publication.t)).collect();
    run.faults.set_published(published);
}

/// A secret replaces the ones before it, after a while in which both are valid.
fn rotate(destination: &mut Destination, change: &Change) {
    let secret = change.patch.get("signing_secret").and_then(serde_json::Value::as_str);
    let Some(key) = secret.and_then(signature::key) else { return };
    let overlap = change.patch.get("overlap_seconds").and_then(serde_json::Value::as_u64);
    let answered = change.answered.unwrap_or(NEVER).saturating_add(SECOND);
    let until = answered.saturating_add(overlap.unwrap_or(OVERLAP_SECONDS).saturating_mul(SECOND));
    destination.secrets.retain(|other| other.key != key);
    for other in destination.secrets.iter_mut().filter(|other| until < other.until) {
        (other.until, other.replaced_at) = (until, change.t);
    }
    let (from, needed_from) = (change.t, answered);
    destination.secrets.push(Secret { key, from, needed_from, until: NEVER, replaced_at: NEVER });
}

/// The payload in an envelope.
fn payload_in(body: &str) -> Option<Digest> {
    #[derive(serde::Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        data: &'a serde_json::value::RawValue,
    }
    use sha2::Digest as _;
    let wrapped: Wrapped<'_> = serde_json::from_str(body).ok()?;
    let hash = sha2::Sha256::digest(wrapped.data.get().as_bytes());
    Some(u128::from_be_bytes(hash[..16].try_into().ok()?))
}

/// The first half of a SHA-256 in hexadecimal; nothing at all is zero.
fn digest(text: &str) -> Result<Digest, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let half = text.get(..32).filter(|_| text.len() == 64);
    let read = half.and_then(|half| u128::from_str_radix(half, 16).ok());
    read.ok_or_else(|| format!("{text:?} is no SHA-256 in hexadecimal"))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2³² of each")
}
