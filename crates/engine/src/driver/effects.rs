//! Does what the machine says: makes attempts, collects results, asks the store for more.

mod log;

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::id::{AttemptId, DestinationId};
use tidegate_core::lane::{Attempt, Report};
use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_store::StoreError;
use tidegate_store::delivery::StoredAttempt;
use tidegate_store::event::Message;
use tidegate_store::lane::{RefillQuery, Refilled};
use tidegate_store::record::{HoldRow, NoticeRow, Settled};
use tokio::sync::watch;

use super::inbox::{Arrival, Landing};
use super::{Driver, Parts};
use crate::dispatcher::{Effect, LaneId, Mark, Sending};
use crate::metrics::Metrics;
use crate::notice::{self, Notice};
use crate::sender::{Answer, Request};

/// How long to wait before a read that failed is tried again.
const READ_AGAIN: Duration = Duration::from_secs(1);

impl Driver {
    /// Carries out all effects of a step. `answered`: the attempt whose end the step was about, for the log.
    pub(super) fn carry_out(&mut self, mut answered: Option<(&Sending, Answer)>) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { lane, sending } => self.send(lane, sending),
                Effect::Settle { lane, delivery, attempt, mark } => {
                    let attempt = attempt.map(|(attempt, report)| {
                        let detail = answered.take();
                        self.log(lane, &delivery, &attempt, &report, detail)
                    });
                    self.settle(lane, mark, delivery, attempt);
                }
                // With how far it has got: starts that led to no result are known to be stored, too.
                Effect::SaveLane { lane } => {
                    let mark = self.dispatcher.lane(lane).mark();
                    self.recorder.await_commit(lane, mark);
                }
                Effect::Refill { lane } => self.refill(lane),
                Effect::Held { lane, reason, since, until } => {
                    let destination = self.lanes.get(lane).destination;
                    self.recorder.holds.push(HoldRow { destination, reason, since, until });
                }
                Effect::Changed { lane, aftermath } => {
                    for (kind, detail) in notice::changes(&aftermath) {
                        self.tell_change(lane, kind, detail);
                    }
                }
            }
        }
        self.effects = effects;
    }

    /// Starts an attempt. The message is at hand, or the attempt reads it first.
    fn send(&mut self, lane: LaneId, sending: Sending) {
        let waits = |_: &Duration| self.waited_apart.insert(sending.delivery);
        let apart = self.parts.deathwatch.apart(sending.delivery).filter(waits);
        let record = self.lanes.get(lane);
        let (outbox, tenure) = (self.outbox.clone(), record.tenure);
        // The driver is gone only when the node has left: the attempt counts as cut off then.
        let land = move |landing| drop(outbox.send(Arrival::Landed { lane, tenure, landing }));
        if self.parts.deathwatch.is_put_aside(sending.delivery) {
            return land(Landing::PutAside(sending.delivery));
        }
        let lifeline = self.tenancy.as_ref().map(|_| record.lifeline.subscribe());
        if let Some(wait) = apart {
            tokio::spawn(keep_apart(wait, lifeline, move || land(Landing::NotSent(sending.delivery))));
            return;
        }
        let (account, destination) = (record.account, record.destination);
        self.tell(|| Notice::of_start(account, destination, &sending));
        let (endpoint, pool) = (Arc::clone(&record.endpoint), Arc::clone(&record.pool));
        let message = self.messages.get(sending.delivery.sequence());
        let parts = Arc::clone(&self.parts);
        // In a box: the runtime moves a task's future several times, and this one is large.
        tokio::spawn(Box::pin(async move {
            let attempt = async {
                let message = match message {
                    Some(message) => Some(message),
                    None => Box::pin(read_message(&parts, &sending)).await?,
                };
                let Some(message) = message else { return Ok(without_event(&sending)) };
                let timeout = time_left(&parts, &sending)?;
                let request = Request {
                    endpoint,
                    message,
                    delivery: sending.delivery,
                    number: sending.number,
                    expires_at: sending.expires_at,
                    timeout,
                    now: sending.attempt.started.wall,
                };
                Ok(parts.sender.send(&pool, request).await)
            };
            let made = tokio::select! {
                made = within_lease(&parts, &sending, attempt) => made,
                () = cut(lifeline) => return,
            };
            land(match made {
                Ok(answer) => Landing::Answered(Box::new(sending), Box::new(answer)),
                Err(NotSent) => Landing::NotSent(sending.delivery),
            });
        }));
    }

    fn settle(&mut self, lane: LaneId, mark: Mark, delivery: Box<Delivery>, attempt: Option<StoredAttempt>) {
        let record = self.lanes.get(lane);
        let (account, destination, epoch) = (record.account, record.destination, record.epoch);
        let (now, mut event) = (self.timestamp(), None);
        if let Status::Final(end) = delivery.status {
            let message = self.messages.take(delivery.id.sequence());
            event = message.map(|message| (message.id, message.payload.len()));
            self.parts.metrics.end(&end);
            self.pulse.ended(account, now, &end);
            if end == End::Delivered {
                self.parts.metrics.delivery_latency.observe(now - delivery.accepted_at);
            }
        }
        self.tell(|| Notice::of_delivery(account, destination, now, &delivery));
        self.recorder.settle(lane, mark, Settled { account, destination, delivery, event, attempt, epoch });
    }

    /// The attempt's line in the log and its row in the store.
    fn log(
        &self,
        lane: LaneId,
        delivery: &Delivery,
        attempt: &Attempt,
        report: &Report,
        detail: Option<(&Sending, Answer)>,
    ) -> StoredAttempt {
        let record = self.lanes.get(lane);
        let (error, response_headers, response_body) = detail.map_or_else(Default::default, |(_, answer)| {
            (answer.error, answer.response_headers, answer.response_body)
        });
        log::attempt(record.id, delivery, report, error.as_deref(), self.dispatcher.lane(lane).state());
        StoredAttempt {
            id: AttemptId::numbered(self.parts.number(1), self.parts.chance.draw()),
            delivery: delivery.id,
            destination: record.destination,
            number: delivery.attempts_made,
            started_at: attempt.started.wall,
            response_time: report.elapsed,
            timeout: attempt.timeout,
            outcome: report.outcome,
            error,
            response_headers,
            response_body: response_body.into(),
            probe: attempt.probe,
        }
    }

    fn tell_change(&mut self, lane: LaneId, kind: &'static str, detail: String) {
        let record = self.lanes.get(lane);
        let (account, destination, at) = (record.account, record.destination, self.timestamp());
        tracing::info!(destination = record.id.map(tracing::field::display), kind, detail, "destination");
        self.recorder.touched.insert(lane);
        self.recorder.notices.push(NoticeRow {
            destination,
            at,
            kind: kind.to_owned(),
            detail: detail.clone(),
        });
        let notice = Notice { account, destination, at, kind, delivery: None, status: None, detail };
        let _nobody = self.parts.notices.send(Arc::new(notice));
    }

    fn refill(&self, lane: LaneId) {
        Metrics::count(&self.parts.metrics.refills, 1);
        let (record, machine) = (self.lanes.get(lane), self.dispatcher.lane(lane));
        let query = RefillQuery {
            destination: record.destination,
            policy: machine.shared_policy(),
            wanted: machine.wanted(),
            halted: machine.halted().iter().map(|halted| halted.line.clone()).collect(),
            now: self.timestamp(),
            after_key: record.after_key.clone(),
        };
        let (parts, outbox, tenure) = (Arc::clone(&self.parts), self.outbox.clone(), record.tenure);
        let id = record.id;
        tokio::spawn(async move {
            if let Some(refilled) = read_refill(&parts, id, query).await {
                let _left = outbox.send(Arrival::Refilled { lane, tenure, refilled: Box::new(refilled) });
            }
        });
    }
}

/// An attempt that was not made: nothing of it goes into the log, and its delivery asks its gates again.
struct NotSent;

/// A suspect of a death waits for its turn apart from the others, and asks its gates again then: it may be stale, or night
/// there.
async fn keep_apart(wait: Duration, lifeline: Option<watch::Receiver<()>>, then: impl FnOnce()) {
    tokio::select! {
        () = tokio::time::sleep(wait) => then(),
        () = cut(lifeline) => {}
    }
}

/// Returns when the lane has gone to another node; never where there is none.
async fn cut(lifeline: Option<watch::Receiver<()>>) {
    match lifeline {
        Some(mut lifeline) => drop(lifeline.changed().await),
        None => pending().await,
    }
}

/// Polls an attempt as long as the lease holds, and checks that before each poll: a node that was frozen in between must not
/// write a request that another node may have sent by now.
async fn within_lease(
    parts: &Parts,
    sending: &Sending,
    attempt: impl Future<Output = Result<Answer, NotSent>>,
) -> Result<Answer, NotSent> {
    let mut attempt = pin!(attempt);
    poll_fn(|context| {
        let now = parts.clock.mono();
        let elapsed = now.since(sending.attempt.started.mono);
        if now.as_millis() < parts.lease_until.load(Relaxed) {
            let work = || poll_unless_it_panics(attempt.as_mut(), context, elapsed);
            return parts.deathwatch.at_work(sending.delivery, work);
        }
        Poll::Ready(Ok(Answer::without_answer(Outcome::Cancelled, elapsed, "the lease ended")))
    })
    .await
}

/// A stranger's answer may hit a bug of ours. The panic then costs this attempt, but not its slot, which would stay taken if
/// nobody reported the attempt's end: it has one, and is not polled again.
fn poll_unless_it_panics(
    attempt: Pin<&mut impl Future<Output = Result<Answer, NotSent>>>,
    context: &mut Context<'_>,
    elapsed: Millis,
) -> Poll<Result<Answer, NotSent>> {
    catch_unwind(AssertUnwindSafe(|| attempt.poll(context))).unwrap_or_else(|_| {
        tracing::error!("an attempt panicked; it counts as one with an answer that cannot be read");
        let outcome = Outcome::NetworkError(NetworkFault::BadResponse);
        Poll::Ready(Ok(Answer::without_answer(outcome, elapsed, "its answer cannot be read")))
    })
}

/// How long the attempt may take, now that it begins. The gates have cut its time to what was left of the event's life; since
/// then its task may have waited for its turn, or for its event to be read. That counts against the event's life, but not
/// against the destination.
fn time_left(parts: &Parts, sending: &Sending) -> Result<Millis, NotSent> {
    let timeout = sending.attempt.timeout;
    let Some(expiry) = sending.expires_at else { return Ok(timeout) };
    let left = timeout.min(expiry - parts.clock.now().wall);
    if left < MIN_TIME_TO_SEND { Err(NotSent) } else { Ok(left) }
}

/// The message of a delivery that waited so long that it is only in the store.
async fn read_message(parts: &Parts, sending: &Sending) -> Result<Option<Arc<Message>>, NotSent> {
    Metrics::count(&parts.metrics.messages_read, 1);
    match parts.store.message(sending.delivery).await {
        Ok(found) => Ok(found),
        Err(error) => {
            tracing::error!(delivery = %sending.delivery, %error, "its event cannot be read");
            tokio::time::sleep(READ_AGAIN).await;
            Err(NotSent)
        }
    }
}

/// What is open keeps its event in the store. Where it is not there all the same, the delivery must come to an end.
fn without_event(sending: &Sending) -> Answer {
    const WHY: &str = "its event is not in the store";
    tracing::error!(delivery = %sending.delivery, "{WHY}");
    Answer::without_answer(Outcome::NetworkError(NetworkFault::BadResponse), Millis::ZERO, WHY)
}

/// The lane waits for the answer, so there must be one, unless we leave.
async fn read_refill(
    parts: &Parts,
    destination: Option<DestinationId>,
    mut query: RefillQuery,
) -> Option<Refilled> {
    loop {
        match parts.store.refill(query.clone()).await {
            Ok(refilled) => return Some(refilled),
            Err(StoreError::Closed) => return None,
            Err(error) => {
                let destination = destination.map(tracing::field::display);
                tracing::error!(destination, %error, "cannot read its backlog");
                tokio::time::sleep(READ_AGAIN).await;
                query.now = parts.clock.now().wall;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELAPSED: Millis = Millis::new(7);
    const OK: Outcome = Outcome::Success { status: 200 };

    /// What an attempt does that waits once, as for a socket, and hits a fault of ours before that, after it, or never.
    async fn attempt(faulty_before: bool, faulty_after: bool) -> Result<Answer, NotSent> {
        assert!(!faulty_before, "a fault of ours");
        tokio::task::yield_now().await;
        assert!(!faulty_after, "a fault of ours");
        Ok(Answer::without_answer(OK, ELAPSED, "it is well"))
    }

    /// Goal: an attempt that panics costs itself alone: it ends as a failure, and those around it are answered.
    #[tokio::test]
    async fn an_attempt_that_panics_costs_itself_alone() {
        let bad = Outcome::NetworkError(NetworkFault::BadResponse);
        let mut tasks = Vec::new();
        for number in 0..12 {
            tasks.push(tokio::spawn(async move {
                let mut attempt = pin!(attempt(number % 4 == 1, number % 4 == 3));
                poll_fn(|context| poll_unless_it_panics(attempt.as_mut(), context, ELAPSED)).await
            }));
        }
        for (number, task) in tasks.into_iter().enumerate() {
            let made = task.await.expect("its task goes on").ok().expect("it was made");
            let expected =
                if number % 2 == 0 { (OK, "it is well") } else { (bad, "its answer cannot be read") };
            assert_eq!(
                (made.report.outcome, made.error.as_deref()),
                (expected.0, Some(expected.1)),
                "{number}"
            );
            assert_eq!(made.report.elapsed, ELAPSED, "{number}");
        }
    }
}
