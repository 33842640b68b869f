//! Whether each delivery ended as it should, with the right reason. Judged from what the destination answered, the clock
//! and the calendar, and for a hold from the gate that it names.

use std::collections::{BTreeMap, HashMap, HashSet};

use tidegate_core::breaker::BreakerChange;
use tidegate_core::delivery::{Dead, Delivery, End, HoldReason, Late, Status};
use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::LaneId;

use super::world::{DESTINATIONS, Kind, PERMANENT, Retries};
use crate::oracle::Violations;
use crate::oracle::quiet::Quiet;
use crate::run::{Note, Observer, View};

/// What happened to one kind of event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) all: u64,
    pub(super) delivered: u64,
    pub(super) expired: u64,
    pub(super) dead: u64,
    /// Of all, those whose first attempt failed, and of these the ones delivered all the same.
    pub(super) hit: u64,
    pub(super) saved: u64,
}

/// Watches how deliveries end.
pub(super) struct Reasons {
    retries: Retries,
    quiet: Quiet,
    last: HashMap<u64, Outcome>,
    hit: HashSet<u64>,
    /// When each destination's breaker last closed, and when it last answered.
    closed_at: Vec<Option<Timestamp>>,
    answered_at: Vec<Option<Timestamp>>,
    pub(super) ends: [Ends; Kind::ALL.len()],
    /// How often each reason was given.
    pub(super) given: BTreeMap<String, u64>,
    pub(super) wrong: Violations,
    /// The longest that a stale delivery was still open.
    pub(super) latest: Millis,
}

impl Reasons {
    pub(super) fn new(retries: Retries, quiet: Quiet) -> Self {
        Self {
            retries,
            quiet,
            last: HashMap::new(),
            hit: HashSet::new(),
            closed_at: vec![None; DESTINATIONS],
            answered_at: vec![None; DESTINATIONS],
            ends: [Ends::default(); 4],
            given: BTreeMap::new(),
            wrong: Violations::default(),
            latest: Millis::ZERO,
        }
    }

    fn ended(&mut self, view: &View<'_>, lane: LaneId, delivery: &Delivery, end: End) {
        let last = self.last.remove(&delivery.place.sequence);
        let Some(kind) = Kind::of(delivery.event_type.as_str()) else { return };
        let ends = &mut self.ends[kind as usize];
        let hit = self.hit.remove(&delivery.place.sequence);
        ends.all += 1;
        ends.hit += u64::from(hit);
        ends.saved += u64::from(hit && end == End::Delivered);
        match end {
            End::Delivered => ends.delivered += 1,
            End::Expired(_) => ends.expired += 1,
            End::DeadLetter(_) => ends.dead += 1,
            End::Cancelled(_) => {}
        }
        if !matches!(end, End::Delivered) {
            *self.given.entry(format!("{}: {}", end.word(), cause(end))).or_default() += 1;
        }
        let right = match end {
            End::Delivered => matches!(last, Some(Outcome::Success { .. })) && !stale(view, delivery),
            End::Expired(late) => self.rightly_expired(view, lane, delivery, late, last, kind),
            End::DeadLetter(dead) => self.rightly_dead(view, delivery, dead, last),
            End::Cancelled(_) => false,
        };
        if !right {
            let (sequence, now) = (delivery.place.sequence, view.now.wall);
            self.wrong.add(|| {
                format!("destination {}, sequence {sequence}, at {now}: {end:?} after {last:?}", lane.index())
            });
        }
    }

    /// The time for one more attempt is over, or would be at the next one; and what is named did keep it waiting.
    fn rightly_expired(
        &mut self,
        view: &View<'_>,
        lane: LaneId,
        delivery: &Delivery,
        late: Late,
        last: Option<Outcome>,
        kind: Kind,
    ) -> bool {
        let Some(expiry) = delivery.expires_at else { return false };
        let now = view.now.wall;
        let over = expiry - now < MIN_TIME_TO_SEND;
        self.latest = self.latest.max(now - expiry);
        match late {
            Late::Behind(reason) => over && self.closed(view, lane, delivery, reason, now),
            Late::RetryTooLate(outcome) => {
                last == Some(outcome)
                    && (over || expiry - now < self.longest_delay(kind, delivery, outcome) + MIN_TIME_TO_SEND)
            }
            // Nothing but a destination's own gates makes anyone wait in this world: the node has slots to spare.
            Late::InQueue | Late::NoServer | Late::OnArrival => false,
        }
    }

    /// Whether that gate was closed when the delivery could last have gone.
    fn closed(
        &self,
        view: &View<'_>,
        lane: LaneId,
        delivery: &Delivery,
        reason: HoldReason,
        now: Timestamp,
    ) -> bool {
        let state = view.dispatcher.lane(lane).state();
        let last_chance = now - MIN_TIME_TO_SEND;
        let place = lane.index();
        match reason {
            HoldReason::QuietHours => self.quiet.is_quiet(place, &delivery.event_type, last_chance),
            HoldReason::CircuitOpen => {
                state.breaker.open().is_some() || self.closed_at[place].is_some_and(|at| at >= last_chance)
            }
            HoldReason::Unavailable => state.unavailable.is_some_and(|wait| wait.until >= last_chance),
            HoldReason::AtCapacity => {
                state.in_flight > 0 || self.answered_at[place].is_some_and(|at| at >= last_chance)
            }
            _ => false,
        }
    }

    /// The longest wait for the next attempt, by the schedule that the delivery should have.
    fn longest_delay(&self, kind: Kind, delivery: &Delivery, outcome: Outcome) -> Millis {
        if let Outcome::Unavailable { retry_after } = outcome {
            return retry_after;
        }
        let used = usize::try_from(delivery.attempts_used.saturating_sub(1)).unwrap_or(usize::MAX);
        let seconds = match (self.retries, kind) {
            (Retries::Default, _) | (_, Kind::Durable) => {
                [30, 120, 600, 3_600].get(used).copied().unwrap_or(0)
            }
            (Retries::Fitted, Kind::Otp) => return Millis::seconds(15),
            (Retries::Fitted, _) if used < 4 => 30,
            (Retries::Fitted, _) => 60,
        };
        Millis::seconds(seconds).scaled(6, 5)
    }

    /// Still good, but refused for good, or tried as often as was promised.
    fn rightly_dead(&self, view: &View<'_>, delivery: &Delivery, dead: Dead, last: Option<Outcome>) -> bool {
        let good = delivery.expires_at.is_none_or(|expiry| expiry - view.now.wall >= MIN_TIME_TO_SEND);
        let counted = self.retries == Retries::Default || delivery.expires_at.is_none();
        match dead {
            Dead::AttemptsUsedUp(outcome) => {
                good && counted && last == Some(outcome) && delivery.attempts_used == 5
            }
            Dead::PermanentStatus(status) => {
                last == Some(Outcome::HttpError { status }) && status == PERMANENT
            }
            Dead::Gone | Dead::PutAside => false,
            Dead::TooOld(_) => view.now.wall >= delivery.too_old_at,
        }
    }
}

fn stale(view: &View<'_>, delivery: &Delivery) -> bool {
    delivery.expires_at.is_some_and(|expiry| view.now.wall > expiry)
}

/// The reason in a few words, without the particulars of the one delivery.
fn cause(end: End) -> String {
    match end {
        End::Expired(Late::Behind(hold)) => format!("behind {hold}"),
        End::Expired(Late::RetryTooLate(_)) => "the next retry would be too late".into(),
        End::DeadLetter(Dead::AttemptsUsedUp(_)) => "attempts used up".into(),
        other => other.to_string(),
    }
}

impl Observer for Reasons {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Answered(lane, sending, answer) => {
                self.answered_at[lane.index()] = Some(view.now.wall);
                let outcome = answer.report.outcome;
                if sending.number == 1 && !matches!(outcome, Outcome::Success { .. }) {
                    self.hit.insert(sending.place.sequence);
                }
                self.last.insert(sending.place.sequence, outcome);
            }
            Note::Changed(lane, aftermath) if aftermath.breaker == Some(BreakerChange::Closed) => {
                self.closed_at[lane.index()] = Some(view.now.wall);
            }
            Note::Settled(lane, delivery) => {
                if let Status::Final(end) = delivery.status {
                    self.ended(view, *lane, delivery, end);
                }
            }
            _ => {}
        }
    }
}
