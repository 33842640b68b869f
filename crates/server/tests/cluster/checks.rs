//! What has to hold of what receivers saw, producers were told, and the API says.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::{Client, Received, millis, now, secs};
use crate::nemesis::{Fault, LATE};
use crate::producer::Event;
use crate::world::{BURST, Destination, Kind, RATE, World};

/// Without a fault, what may go goes within this time. It has room for slots that move.
const AT_ONCE: Duration = secs(2);

/// One request at one destination.
struct Seen<'a> {
    request: Received,
    event: &'a Event,
    /// What the API says of this attempt. Of several requests with one number the last one is meant.
    recorded: Option<&'a str>,
}

impl Seen<'_> {
    fn succeeded(&self) -> bool {
        (200..300).contains(&self.request.answered)
    }

    fn ended_at(&self) -> Instant {
        self.request.ended_at.expect("all are at rest")
    }
}

/// Everything that a run has shown.
pub(crate) struct Findings<'a> {
    pub(crate) world: &'a World,
    pub(crate) faults: &'a [Fault],
    events: HashMap<u64, &'a Event>,
    attempts: HashMap<(String, u32), String>,
    faulty: Vec<String>,
    repeats: usize,
    overlaps: usize,
    slowest: Duration,
}

impl<'a> Findings<'a> {
    pub(crate) fn new(
        world: &'a World,
        faults: &'a [Fault],
        events: &'a [Event],
        attempts: HashMap<(String, u32), String>,
    ) -> Self {
        let events: HashMap<u64, &Event> = events.iter().map(|event| (event.number, event)).collect();
        let (faulty, slowest) = (Vec::new(), Duration::ZERO);
        Self { world, faults, events, attempts, faulty, repeats: 0, overlaps: 0, slowest }
    }

    /// Looks at everything, and fails with all that does not hold.
    pub(crate) fn check(mut self) {
        let mut received = 0;
        for destination in &self.world.destinations {
            let attempts = std::mem::take(&mut self.attempts);
            let events = self.events.clone();
            let seen = self.seen(destination, &events, &attempts);
            received += seen.len();
            self.all_came(destination, &seen);
            self.repeats_were_in_flight(destination, &seen);
            self.log_is_true(destination, &seen, &attempts);
            self.concurrency_holds(destination, &seen);
            match destination.kind {
                Kind::Limited => self.rate_holds(destination, &seen),
                Kind::Fifo | Kind::Keyed => self.order_holds(destination, &seen),
                Kind::Closing => self.window_holds(destination, &seen),
                Kind::Plain => self.goes_on(destination, &seen),
                _ => {}
            }
            self.attempts = attempts;
        }
        println!(
            "  {} events, {received} requests, {} repeated, {} overlapped with a frozen node's, slowest {:.1} s",
            self.events.len(),
            self.repeats,
            self.overlaps,
            self.slowest.as_secs_f64()
        );
        let shown = self.faulty.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.faulty.is_empty(), "{} things do not hold:\n{shown}", self.faulty.len());
    }

    /// How many were received twice though they had been answered with success.
    fn fail(&mut self, destination: &Destination, what: impl Display) {
        self.faulty.push(format!("{:?} {}: {what}", destination.kind, destination.name));
    }

    /// When something happened, seen from the first fault.
    fn at(&self, at: Instant) -> String {
        let Some(first) = self.faults.first() else { return "before any fault".to_owned() };
        let seconds = |length: Duration| length.as_secs_f64();
        match at.checked_duration_since(first.from) {
            Some(after) => format!("{:.2} s after the fault", seconds(after)),
            None => format!("{:.2} s before the fault", seconds(first.from - at)),
        }
    }

    fn seen<'b>(
        &mut self,
        destination: &Destination,
        events: &HashMap<u64, &'b Event>,
        attempts: &'b HashMap<(String, u32), String>,
    ) -> Vec<Seen<'b>> {
        let mut all: Vec<Seen<'b>> = Vec::new();
        for request in destination.receiver.received() {
            let body: Value = serde_json::from_slice(&request.body).expect("the body is the payload");
            let number = body["number"].as_u64().expect("our payloads have a number");
            let Some(event) = events.get(&number) else {
                self.fail(destination, format!("{number} was never published"));
                continue;
            };
            if request.event_id() != event.id || !destination.gets(&event.event_type) {
                self.fail(destination, format!("{event:?} came as {}", request.event_id()));
            }
            let delivery = request.delivery_id().to_owned();
            let attempt = (delivery, request.attempt());
            all.iter_mut()
                .filter(|before| is(&before.request, &attempt))
                .for_each(|before| before.recorded = None);
            let recorded = attempts.get(&attempt).map(String::as_str);
            all.push(Seen { request, event, recorded });
        }
        all
    }

    /// What was answered with 202 came, and was taken.
    fn all_came(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let came: HashSet<u64> =
            seen.iter().filter(|one| one.succeeded()).map(|one| one.event.number).collect();
        let expected: Vec<&Event> = self.events.values().copied().collect();
        for event in expected {
            if destination.gets(&event.event_type) && !came.contains(&event.number) {
                let accepted = self.at(event.accepted_at);
                self.fail(destination, format!("{event:?}, accepted {accepted}, never came"));
            }
        }
    }

    /// What was taken comes again only if a fault hit its sender before the result was committed.
    fn repeats_were_in_flight(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let mut taken: HashMap<u64, &Seen<'_>> = HashMap::new();
        for one in seen {
            if let Some(before) = taken.get(&one.event.number) {
                self.repeats += 1;
                let cut = before.recorded.is_none_or(|outcome| outcome != "success");
                let lost = self.faults.iter().any(|fault| fault.may_have_lost(&before.request));
                if !(cut && (lost || before.recorded == Some("cancelled"))) {
                    let what = format!(
                        "{:?} came twice and was not in flight at a fault: {} (attempt {}, recorded as {:?}), and {} (attempt {}, recorded as {:?})",
                        one.event,
                        self.at(before.request.began_at),
                        before.request.attempt(),
                        before.recorded,
                        self.at(one.request.began_at),
                        one.request.attempt(),
                        one.recorded,
                    );
                    self.fail(destination, what);
                }
            }
            if one.succeeded() {
                taken.insert(one.event.number, one);
            }
        }
    }

    /// The log has every request, but those that were in flight at a fault, and no other.
    fn log_is_true(
        &mut self,
        destination: &Destination,
        seen: &[Seen<'_>],
        attempts: &HashMap<(String, u32), String>,
    ) {
        for one in seen.iter().filter(|one| one.recorded.is_none()) {
            let at = one.request.began_at;
            if !self.faults.iter().any(|fault| fault.may_have_lost(&one.request)) {
                let what = format!("{:?} came {} and is not in the log", one.event, self.at(at));
                self.fail(destination, what);
            }
        }
        let known: HashSet<&str> = seen.iter().map(|one| one.request.delivery_id()).collect();
        let missing: Vec<String> = attempts
            .iter()
            .filter(|((delivery, _), outcome)| known.contains(delivery.as_str()) && *outcome == "success")
            .filter(|(attempt, _)| !seen.iter().any(|one| one.succeeded() && is(&one.request, attempt)))
            .map(|(attempt, _)| format!("{attempt:?} is in the log as a success and never came"))
            .collect();
        missing.into_iter().for_each(|what| self.fail(destination, what));
    }

    /// Never more open at a time than allowed, but for what a frozen node had sent.
    fn concurrency_holds(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        for one in seen {
            let at = one.request.began_at;
            let open = seen.iter().filter(|other| other.request.began_at <= at && other.ended_at() > at);
            let froze = |other: &&Seen<'_>| {
                !self.faults.iter().any(|fault| {
                    fault.until > at && at > fault.from + LATE && fault.froze(other.request.began_at)
                })
            };
            let (all, awake) = (open.clone().count(), open.filter(froze).count());
            if awake > destination.concurrency() {
                let what = format!("{awake} open at a time, {}", self.at(at));
                self.fail(destination, what);
            } else if all > destination.concurrency() {
                self.overlaps += 1;
            }
        }
    }

    /// In any interval of T seconds at most `burst + rate · T`.
    fn rate_holds(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let times: Vec<Instant> = seen.iter().map(|one| one.request.began_at).collect();
        let mut worst: Option<(f64, String)> = None;
        for (first, from) in times.iter().enumerate() {
            for (last, to) in times.iter().enumerate().skip(first) {
                let time = to.saturating_duration_since(*from) + LATE;
                let most = BURST as f64 + RATE as f64 * time.as_secs_f64();
                let count = (last - first + 1) as f64;
                if count > most && worst.as_ref().is_none_or(|worst| worst.0 < count - most) {
                    let what = format!("{count} in {time:?} from {}, at most {most:.1}", self.at(*from));
                    worst = Some((count - most, what));
                }
            }
        }
        if let Some((_, what)) = worst {
            self.fail(destination, what);
        }
    }

    /// Within an ordering key (in `fifo` there is one) each is taken before the next one comes, in the order of publishing.
    fn order_holds(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let mut last: HashMap<Option<&str>, &Seen<'_>> = HashMap::new();
        let mut first_came = HashSet::new();
        let mut taken_at: HashMap<u64, Instant> = HashMap::new();
        for one in seen.iter().filter(|one| one.succeeded()) {
            let at = taken_at.entry(one.event.number).or_insert(one.ended_at());
            *at = one.ended_at().min(*at);
        }
        for one in seen {
            if !first_came.insert(one.event.number) {
                continue;
            }
            let Some(before) = last.insert(one.event.key.as_deref(), one) else { continue };
            let taken = taken_at.get(&before.event.number);
            if before.event.number > one.event.number || taken.is_none_or(|at| *at > one.request.began_at) {
                let what = format!(
                    "number {} came {}, after number {}, which was accepted {:?} later",
                    one.event.number,
                    self.at(one.request.began_at),
                    before.event.number,
                    before.event.accepted_at.saturating_duration_since(one.event.accepted_at),
                );
                self.fail(destination, what);
            }
        }
    }

    /// Nothing comes while the window is closed.
    fn window_holds(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let (from, to) = self.world.closed;
        for one in seen {
            let at = one.request.began_at;
            // Clocks are followed to some milliseconds.
            if from + LATE < at && at + LATE < to {
                let what = format!("{:?} came {:?} into the quiet hours", one.event, at - from);
                self.fail(destination, what);
            }
        }
    }

    /// What may go goes at once, or at the latest when a fault must be over.
    fn goes_on(&mut self, destination: &Destination, seen: &[Seen<'_>]) {
        let mut came = HashSet::new();
        for one in seen {
            if !came.insert(one.event.number) {
                continue;
            }
            let mut due = one.event.accepted_at;
            for fault in self.faults {
                if fault.from <= due + AT_ONCE {
                    due = due.max(fault.delivers_by);
                }
            }
            let late = one.request.began_at.saturating_duration_since(due);
            self.slowest =
                self.slowest.max(one.request.began_at.saturating_duration_since(one.event.accepted_at));
            if late > AT_ONCE {
                let (accepted, came) = (self.at(one.event.accepted_at), self.at(one.request.began_at));
                self.fail(
                    destination,
                    format!("number {}, accepted {accepted}, came {came}", one.event.number),
                );
            }
        }
    }
}

fn is(request: &Received, attempt: &(String, u32)) -> bool {
    request.attempt() == attempt.1 && request.delivery_id() == attempt.0
}

/// All attempts that the API knows, by delivery and number, with their outcome.
pub(crate) async fn attempts(client: &Client, world: &World) -> HashMap<(String, u32), String> {
    let mut all = HashMap::new();
    for destination in &world.destinations {
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/destinations/{}/attempts?limit=200{cursor}", destination.id);
            let page = client.get(&path).await.expect(200);
            for item in page["items"].as_array().into_iter().flatten() {
                let delivery = item["delivery_id"].as_str().unwrap_or_default().to_owned();
                let number = item["number"].as_u64().and_then(|number| u32::try_from(number).ok());
                let outcome = item["outcome"].as_str().unwrap_or_default().to_owned();
                let before = all.insert((delivery, number.unwrap_or(0)), outcome);
                assert!(before.is_none(), "two attempts have one number: {item} {before:?}");
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
    }
    all
}

/// All nodes say that everything is delivered, and that nothing waits.
pub(crate) async fn api_agrees(nodes: &[Client], world: &World, events: &[Event]) {
    let expected: usize = events
        .iter()
        .map(|event| {
            world.destinations.iter().filter(|destination| destination.gets(&event.event_type)).count()
        })
        .sum();
    for node in nodes {
        for status in ["queued", "delivering", "retry_scheduled", "dead_letter", "expired", "cancelled"] {
            let listed = node.get(&format!("/v1/deliveries?status={status}&limit=1")).await.expect(200);
            assert_eq!(listed["items"].as_array().map(Vec::len), Some(0), "{listed}");
        }
        let listed = node.get("/v1/deliveries?status=delivered&limit=1&total=true").await.expect(200);
        if listed["total"].as_u64().is_some_and(|total| total < 10_000) {
            assert_eq!(listed["total"].as_u64(), Some(expected as u64), "{listed}");
        }
        for destination in &world.destinations {
            let path = format!("/v1/destinations/{}", destination.id);
            let began = now();
            loop {
                let shown = node.get(&path).await.expect(200);
                if shown["queued_events"] == 0 && shown["inflight"] == 0 {
                    break;
                }
                assert!(began.elapsed() < secs(5), "nothing is open, but {} says: {shown}", node.authority);
                tokio::time::sleep(millis(100)).await;
            }
        }
    }
}

/// What the nodes say of results that came too late to count.
pub(crate) async fn stale(nodes: &[Client]) -> String {
    let mut lines = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let text = node.get("/metrics").await.text();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        let names = ["tidegate_stale_results_total", "tidegate_cut_off_total"];
        let found: Vec<String> = names.into_iter().filter_map(line).collect();
        lines.push(format!("node {number}: {}", found.join(", ")));
    }
    lines.join("; ")
}
