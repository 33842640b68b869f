//! Which of a lane's deliveries goes next, and its start.

use tidegate_core::delivery::{Delivery, Place, Status};
use tidegate_core::gate::{self, Decision, Go, Hold, Question};
use tidegate_core::limits;
use tidegate_core::order::Turn;
use tidegate_core::refill::Group;
use tidegate_core::time::{Now, Timestamp};

use super::super::{Effect, Sending};
use super::{Flight, Lane};

/// A delivery that may go, and where it lies.
pub(super) struct Candidate {
    group: Group,
    place: Place,
    go: Go,
}

/// Which of several candidates goes: the least. By urgency, by number of acceptance where the longest waiting goes, by place.
type Rank = (u8, Option<u64>, Place);

/// What keeps a lane from sending: the first hold met, and the earliest time at which any of its deliveries may go.
#[derive(Default)]
pub(super) struct Blocked {
    pub(super) hold: Option<Hold>,
    pub(super) until: Option<Timestamp>,
}

impl Lane {
    /// The delivery that goes next: the most urgent, then the earliest; now and then the longest waiting; for a probe
    /// the longest waiting that was not the last probe.
    pub(super) fn choose(&mut self, now: Now) -> Result<Candidate, Blocked> {
        let mut best: Option<(Candidate, Rank)> = None;
        let mut blocked = Blocked::default();
        let oldest_turn = self.mark.starts % u64::from(limits::STARTS_PER_OLDEST)
            == u64::from(limits::STARTS_PER_OLDEST) - 1;
        for (group, delivery) in self.queue.firsts(None) {
            if self.crowded && self.line_is_out(delivery) {
                continue;
            }
            match self.decide(now, group, delivery) {
                Decision::Go(go) => {
                    let place = delivery.place;
                    // Who has waited longest is told by the acceptance: when it occurred is for its publisher to say.
                    let rank = match go.probe {
                        Some(_) => (0, None, place),
                        None if oldest_turn => (0, Some(place.sequence), place),
                        None => (group.priority.get(), None, place),
                    };
                    if best.as_ref().is_none_or(|(_, first)| rank < *first) {
                        best = Some((Candidate { group, place, go }, rank));
                    }
                }
                Decision::Wait(wait) => {
                    if let Hold::AtCapacity { .. } = wait.hold {
                        self.slots_denied += u64::from(blocked.hold.is_none());
                    }
                    blocked.hold.get_or_insert(wait.hold);
                    // When its first hold ends it may be another that keeps it: whoever asks is told of that one.
                    let ends = [blocked.until, wait.until, wait.hold.until()];
                    blocked.until = ends.into_iter().flatten().min();
                }
                // Ended by the clock between two looks: the next look takes it away.
                Decision::Finish(_) | Decision::Nothing => blocked.until = Some(now.wall),
            }
        }
        match best {
            Some((candidate, ..)) if candidate.go.probe.is_some() => {
                Ok(self.another_probe(now).unwrap_or(candidate))
            }
            // What is more urgent is about to come from the store.
            Some((candidate, ..))
                if !oldest_turn && self.queue.awaits_more_urgent(candidate.group.priority) =>
            {
                Err(Blocked::default())
            }
            Some((candidate, ..)) => Ok(candidate),
            None => Err(blocked),
        }
    }

    /// Whether another delivery of its line is in flight, though the line's head is not.
    fn line_is_out(&self, delivery: &Delivery) -> bool {
        let line = self.policy.ordering.line(delivery);
        line.is_some()
            && self.flights.iter().any(|flight| self.policy.ordering.line(&flight.delivery) == line)
    }

    /// The longest waiting delivery that may go and was not the last probe: one poisonous delivery must not decide alone
    /// about its destination. Lines keep their heads.
    fn another_probe(&self, now: Now) -> Option<Candidate> {
        let last = self.state.last_probe?;
        (self.queue.firsts(Some(last)))
            .filter_map(|(group, delivery)| match self.decide(now, group, delivery) {
                Decision::Go(go) => Some(Candidate { group, place: delivery.place, go }),
                _ => None,
            })
            .min_by_key(|candidate| candidate.place)
    }

    /// What lies on a shelf has its turn: the queue exposes only heads.
    fn decide(&self, now: Now, group: Group, delivery: &Delivery) -> Decision {
        gate::decide(&Question {
            now,
            delivery,
            turn: Turn::Its,
            quiet: group.quiet,
            policy: &self.policy,
            lane: &self.state,
        })
    }

    pub(super) fn start(&mut self, now: Now, candidate: &Candidate, effects: &mut Vec<Effect>) {
        let mut delivery =
            self.queue.take(candidate.group, candidate.place).expect("the candidate lies there");
        delivery.status = Status::Delivering;
        let attempt = self.state.start(now, delivery.id, candidate.go);
        self.mark.starts += 1;
        if let Some(line) = self.policy.ordering.line(&delivery) {
            self.queue.head_started(&line);
        }
        let sending = Sending {
            delivery: delivery.id,
            place: delivery.place,
            event_type: delivery.event_type.clone(),
            expires_at: delivery.expires_at,
            number: delivery.attempts_made + 1,
            attempt,
        };
        effects.push(Effect::Send { lane: self.id, sending });
        if self.flights.is_empty() {
            self.progress_at = now.mono;
        }
        self.flights.push(Flight { delivery, attempt, cancelled: None });
    }
}
