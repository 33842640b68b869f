//! A node's driver, turn by turn, as the engine's driver runs it: it looks at the lease, takes in what has come, hands over
//! empty slots, and gives the store what is to be written.

use tidegate_core::delivery::Delivery;
use tidegate_core::lane::{LastStop, Report};
use tidegate_core::order::Ordering;
use tidegate_core::outcome::Outcome;
use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Mono, Now};
use tidegate_engine::dispatcher::{self, Effect, LaneId, Mark, Presence, Sending};
use tidegate_engine::tenancy::{Passed, Tenancy};
use tidegate_engine::{Past, restore};
use tidegate_store::DestinationNo;
use tidegate_store::lane::StoredLane;

use super::Cluster;
use super::node::{Flight, Handed, Input, State};
use super::work::{Arrival, Ask, Claimed, LaneSave, Record, Settled, Work, slot};
use crate::run::Note;
use crate::world::Answer;

/// What timeouts have learned is large and changes slowly: a crash may cost this much of it.
const TIMEOUTS_EVERY: Millis = Millis::minutes(1);
/// From the decision to make a request to its first byte, at most, in microseconds.
const DEPARTS_WITHIN: u64 = 1_500;
/// A refill without an answer is asked for again after so long.
const READ_AGAIN: i64 = 2_000_000;

impl Cluster {
    /// One turn: everything that has come.
    pub(super) fn turn(&mut self, n: usize) {
        if matches!(self.nodes[n].state, State::Down | State::Starting) {
            return;
        }
        if !std::mem::take(&mut self.nodes[n].mid_turn) {
            self.mind_lease(n);
            self.hold_or_start(n);
        }
        self.step(n, dispatcher::Input::Wake);
        while let Some(input) = self.nodes[n].inbox.pop_front() {
            self.take_in(n, input);
        }
        self.hand_over(n);
        self.flush(n, false);
        self.set_alarm(n);
    }

    pub(super) fn step(&mut self, n: usize, input: dispatcher::Input) {
        let now = self.now_at(n);
        let node = &mut self.nodes[n];
        let mut effects = std::mem::take(&mut node.effects);
        node.dispatcher.step(now, input, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { lane, sending } => self.send(n, lane, sending),
                Effect::Settle { lane, delivery, mark, .. } => self.settle(n, lane, *delivery, mark),
                Effect::SaveLane { lane } => drop(self.nodes[n].recorder.touched.insert(lane)),
                Effect::Refill { lane } => self.refill(n, lane),
                Effect::Held { .. } => {}
                Effect::Changed { lane, aftermath } => {
                    self.nodes[n].recorder.touched.insert(lane);
                    if self.owns(n, lane.index()) {
                        self.tell(n, &Note::Changed(lane, &aftermath));
                    }
                }
            }
        }
        self.nodes[n].effects = effects;
    }

    fn settle(&mut self, n: usize, lane: LaneId, delivery: Delivery, mark: Mark) {
        let node = &mut self.nodes[n];
        let (epoch, recorder) = (node.lanes[lane.index()].epoch, &mut node.recorder);
        recorder.settled.push(Settled { lane, epoch, delivery });
        recorder.await_commit(lane, mark);
    }

    fn mind_lease(&mut self, n: usize) {
        let now = self.now_at(n).mono;
        let node = &mut self.nodes[n];
        if node.tenancy.has_ended(now) && node.dispatcher.in_flight() > 0 {
            let lanes = node.dispatcher.lanes().iter().filter(|lane| lane.in_flight_count() > 0);
            let busy: Vec<LaneId> = lanes.map(dispatcher::Lane::id).collect();
            self.watch.counts.lease_ended_busy += 1;
            self.cut_off(n, &busy);
        }
    }

    fn hold_or_start(&mut self, n: usize) {
        let now = self.now_at(n).mono;
        let node = &mut self.nodes[n];
        let hold = node.state == State::Closing || !node.tenancy.may_start(now);
        node.dispatcher.hold_starts(hold);
    }

    /// What these lanes have in flight is cut off, and goes back to its queue.
    fn cut_off(&mut self, n: usize, lanes: &[LaneId]) {
        let now = self.now_at(n).mono;
        for lane in lanes {
            let out = self.nodes[n].dispatcher.lane(*lane).in_flight();
            let out: Vec<_> = out.map(|(delivery, attempt)| (delivery.id, attempt.started)).collect();
            self.watch.counts.cut_off += out.len() as u64;
            let cancelled = |started: Now| Report {
                outcome: Outcome::Cancelled,
                elapsed: now.since(started.mono),
                rate_hint: None,
            };
            self.cut(n, *lane);
            for (delivery, started) in out {
                let (report, draw) = (cancelled(started), self.draws.draw());
                self.step(n, dispatcher::Input::Finished { lane: *lane, delivery, report, draw });
            }
        }
    }

    /// Connections of a lane's attempts are closed.
    fn cut(&mut self, n: usize, lane: LaneId) {
        let own: Vec<u64> = (self.flights.iter())
            .filter(|(_, flight)| flight.node == n && flight.lane == lane)
            .map(|(id, _)| *id)
            .collect();
        for id in own {
            if let Some(flight) =
                self.drop_flight(id).filter(|flight| flight.answer.is_some() && !flight.excused)
                && self.owns(n, lane.index())
            {
                let elapsed = self.now().mono.since(flight.sending.attempt.started.mono);
                let report = Report { outcome: Outcome::Cancelled, elapsed, rate_hint: None };
                let answer = Answer { report, would_succeed: false };
                self.tell(n, &Note::Answered(lane, &flight.sending, &answer));
            }
        }
    }

    fn take_in(&mut self, n: usize, input: Input) {
        match input {
            Input::Commit(works) => self.heard_commit(n, works),
            Input::Answered(id) => self.answered(n, id),
            Input::Refilled { lane, token, refill } => {
                let record = &mut self.nodes[n].lanes[lane.index()];
                if record.asked == token {
                    record.asked = 0;
                    self.step(n, dispatcher::Input::Refilled { lane, refill: *refill });
                }
            }
            Input::Noticed => self.read_news(n),
            Input::News(news) => self.take_news(n, news),
            Input::Overdue(overdue) => {
                for (destination, delivery) in overdue.into_iter().flatten() {
                    if let Some(lane) = self.here(n, destination) {
                        let delivery = Box::new(delivery);
                        self.step(n, dispatcher::Input::Overdue { lane, delivery });
                    }
                }
                self.nodes[n].dispatcher.reads(false);
            }
            Input::Take(claimed) => claimed.into_iter().for_each(|claimed| self.take_slot(n, claimed)),
            Input::Pass(slots, limit) => self.pass(n, &slots, limit),
            Input::Lose(slots) => self.lose(n, &slots),
            Input::Work(until) => {
                self.nodes[n].tenancy.work_until(until);
                self.nodes[n].lease_until = until;
            }
            Input::OutOfReach => self.nodes[n].tenancy.reached(false),
            Input::Second => self.show_in_flight(n),
        }
    }

    fn heard_commit(&mut self, n: usize, works: Vec<Work>) {
        let mut accepted = Vec::new();
        for work in works {
            match work {
                Work::Accept(it) => accepted.push((it.lane, it.delivery)),
                Work::Record(record) => {
                    let handed = self.nodes[n].recorder.under_way.remove(&record.ticket);
                    let Some(Handed { marks, empty }) = handed else { continue };
                    if !empty.is_empty() {
                        self.emptied(n, empty);
                    }
                    for (lane, mark) in marks {
                        self.step(n, dispatcher::Input::Saved { lane, mark });
                    }
                }
            }
        }
        for (lane, delivery) in accepted {
            let here = self.here(n, lane.index());
            let tenancy = &self.nodes[n].tenancy;
            if here.is_some() && tenancy.took_after(slot(lane), delivery.accepted_at) {
                self.step(n, dispatcher::Input::Behind { lane });
                continue;
            }
            let ordered = self.setup.world.destinations[lane.index()].policy.ordering != Ordering::None;
            if ordered && self.here(n, lane.index()).is_some() {
                self.nodes[n].tenancy.await_news(number(lane.index()), delivery);
                self.read_news(n);
            } else {
                self.deliver(n, lane.index(), delivery);
            }
        }
    }

    /// The lane of a destination, if this node works it, or has it in flight.
    fn here(&self, n: usize, destination: usize) -> Option<LaneId> {
        let lane = self.lane_id(destination);
        (self.nodes[n].dispatcher.lane(lane).presence() != Presence::Elsewhere).then_some(lane)
    }

    fn deliver(&mut self, n: usize, destination: usize, delivery: Delivery) {
        if let Some(lane) = self.here(n, destination) {
            self.step(n, dispatcher::Input::Accepted { lane, delivery });
        }
    }

    pub(super) fn read_news(&mut self, n: usize) {
        // Looks come as they are asked for: that they are a while apart in a real node spares work, and no rule depends on it.
        let now = self.now_at(n).mono;
        if self.nodes[n].tenancy.read_news(now).is_none() {
            return;
        }
        let token = self.token();
        let node = &mut self.nodes[n];
        node.news = token;
        self.watch_settled(n);
        let (cursors, held) = Default::default();
        self.ask_desk(n, token, Ask::News { token, cursors, held });
    }

    fn take_news(&mut self, n: usize, news: Option<Vec<(usize, Delivery)>>) {
        self.nodes[n].tenancy.reached(news.is_some());
        if let Some(brought) = news {
            let known = brought.into_iter().filter(|(destination, _)| self.here(n, *destination).is_some());
            let known = known.map(|(destination, delivery)| (number(destination), delivery)).collect();
            for (destination, delivery) in self.nodes[n].tenancy.arrived(known, false) {
                self.deliver(n, destination.0 as usize, delivery);
            }
        }
        let again = self.nodes[n].tenancy.done_reading();
        self.watch_settled(n);
        if again {
            self.read_news(n);
        }
    }

    /// Lanes keep in mind what they have settled as long as it may come again.
    fn watch_settled(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        if let Some(begins) = node.tenancy.watches() {
            node.dispatcher.reads(begins);
        }
    }

    fn take_slot(&mut self, n: usize, claimed: Claimed) {
        let now = self.now_at(n);
        let Claimed { slot, epoch, last_stop, lanes } = claimed;
        self.nodes[n].tenancy.take(slot, epoch, now.wall);
        for destination in self.lanes_of(slot) {
            let lane = self.lane_id(destination);
            let stored = lanes.iter().find(|stored| stored.destination == number(destination));
            self.change_hands(n, lane, stored, now.mono);
            self.nodes[n].lanes[destination].epoch = Some(epoch);
            let policy = self.nodes[n].dispatcher.lane(lane).shared_policy();
            let past = stored.map_or(Past::Unknown, Past::Stored);
            let state = restore(past, &policy, false, now, last_stop);
            let forfeited = state.unsaved_starts > 0;
            self.step(n, dispatcher::Input::Take { lane, state: Box::new(state) });
            let node = &mut self.nodes[n];
            if forfeited {
                let mark = node.dispatcher.lane(lane).mark();
                node.recorder.await_commit(lane, mark);
            }
            node.recorder.touched.insert(lane);
        }
    }

    fn change_hands(&mut self, n: usize, lane: LaneId, stored: Option<&StoredLane>, now: Mono) {
        self.cut(n, lane);
        let record = &mut self.nodes[n].lanes[lane.index()];
        record.asked = 0;
        record.state = stored.and_then(|stored| stored.state.clone()).unwrap_or_default();
        record.timeouts_at = now;
        record.epoch = None;
    }

    fn pass(&mut self, n: usize, slots: &[Slot], limit: Millis) {
        let until = self.now_at(n).mono + limit;
        for slot in slots {
            let lanes: Vec<LaneId> = self.lanes_of(*slot).map(|lane| self.lane_id(lane)).collect();
            for lane in &lanes {
                self.step(n, dispatcher::Input::Pass { lane: *lane });
            }
            self.nodes[n].tenancy.pass(*slot, lanes, until);
        }
    }

    /// Tells of slots whose last attempt has ended, when that is committed.
    fn hand_over(&mut self, n: usize) {
        let now = self.now_at(n).mono;
        let node = &mut self.nodes[n];
        if !node.tenancy.passes() {
            return;
        }
        let Passed { late, empty } =
            node.tenancy.passed(now, |lane| node.dispatcher.lane(lane).in_flight_count() > 0);
        if !late.is_empty() {
            self.watch.counts.drained_late += 1;
            self.cut_off(n, &late);
        }
        if empty.is_empty() {
            return;
        }
        let lanes: Vec<LaneId> =
            empty.iter().flat_map(|slot| self.lanes_of(*slot)).map(|lane| self.lane_id(lane)).collect();
        let node = &mut self.nodes[n];
        let started = |lane: &&LaneId| node.dispatcher.lane(**lane).mark().starts > 0;
        node.recorder.touched.extend(lanes.iter().filter(started));
        self.flush(n, true);
        for lane in lanes {
            self.step(n, dispatcher::Input::Lose { lane });
            self.change_hands(n, lane, None, now);
        }
        self.nodes[n].recorder.empty.extend(empty);
    }

    fn lose(&mut self, n: usize, slots: &[Slot]) {
        let now = self.now_at(n).mono;
        for slot in slots {
            self.nodes[n].tenancy.lose(*slot);
            for destination in self.lanes_of(*slot) {
                let lane = self.lane_id(destination);
                self.step(n, dispatcher::Input::Lose { lane });
                self.change_hands(n, lane, None, now);
            }
        }
    }

    fn show_in_flight(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let changed = |lane: &&dispatcher::Lane| {
            lane.presence() != Presence::Elsewhere
                && lane.state().in_flight != node.lanes[lane.id().index()].shown_in_flight
        };
        let changed: Vec<LaneId> =
            node.dispatcher.lanes().iter().filter(changed).map(dispatcher::Lane::id).collect();
        node.recorder.touched.extend(changed);
    }

    /// Hands what is to be written to the store.
    fn flush(&mut self, n: usize, all: bool) {
        let (now, as_of) = (self.now_at(n), self.now().wall);
        let node = &mut self.nodes[n];
        let mut saves = Vec::new();
        for lane in std::mem::take(&mut node.recorder.touched) {
            let machine = node.dispatcher.lane(lane);
            if machine.presence() == Presence::Elsewhere {
                continue;
            }
            let record = &mut node.lanes[lane.index()];
            let state = machine.encode_state(now);
            let in_flight = std::mem::replace(&mut record.shown_in_flight, machine.state().in_flight);
            let state = (state != record.state || in_flight != record.shown_in_flight).then_some(state);
            state.iter().for_each(|state| record.state.clone_from(state));
            let due = all || now.mono.since(record.timeouts_at) >= TIMEOUTS_EVERY;
            let timeouts = due.then(|| machine.encode_timeouts());
            if due {
                record.timeouts_at = now.mono;
            }
            if state.is_some() || timeouts.is_some() {
                saves.push(LaneSave { lane, epoch: record.epoch, state, timeouts, as_of });
            }
        }
        let recorder = &mut node.recorder;
        if recorder.settled.is_empty() && saves.is_empty() && recorder.marks.is_empty() {
            let empty = std::mem::take(&mut recorder.empty);
            match recorder.under_way.last_entry() {
                Some(mut last) => last.get_mut().empty.extend(empty),
                None if empty.is_empty() => {}
                None => self.emptied(n, empty),
            }
            return;
        }
        recorder.tickets += 1;
        let ticket = recorder.tickets;
        let (marks, empty) = (std::mem::take(&mut recorder.marks), std::mem::take(&mut recorder.empty));
        recorder.under_way.insert(ticket, Handed { marks, empty });
        let settled = std::mem::take(&mut recorder.settled);
        self.write(n, Work::Record(Record { ticket, settled, lanes: saves }));
    }

    /// When the machine wants to be looked at again.
    fn set_alarm(&mut self, n: usize) {
        let node = &self.nodes[n];
        let wake = node.dispatcher.next_wake().map(|at| node.clock.at_wall(at));
        let look = node.tenancy.next_look().map(|at| node.clock.at_mono(at));
        let Some(at) = wake.into_iter().chain(look).min() else { return };
        let at = at.max(self.us + 200);
        if at < node.alarm.1 || node.alarm.1 <= self.us {
            let token = self.token();
            self.nodes[n].alarm = (token, at);
            self.plan_at_node(n, at, Arrival::Alarm(token));
        }
    }

    fn refill(&mut self, n: usize, lane: LaneId) {
        let token = self.token();
        self.nodes[n].lanes[lane.index()].asked = token;
        self.ask_refill(n, lane, token);
    }

    /// The lane waits for the answer, so there must be one: it is asked again until there is, or until the lane changes hands.
    pub(super) fn ask_refill(&mut self, n: usize, lane: LaneId, token: u64) {
        if self.nodes[n].lanes[lane.index()].asked == token {
            self.ask(n, Ask::Refill { lane, token });
            self.plan_at_node(n, self.us + READ_AGAIN, Arrival::ReadAgain { lane, token });
        }
    }

    fn send(&mut self, n: usize, lane: LaneId, sending: Sending) {
        let id = self.token();
        let flight = Flight { node: n, lane, sending, answer: None, there: false, excused: false };
        self.flights.insert(id, flight);
        let at = self.us + self.wire.below(DEPARTS_WITHIN).cast_signed();
        self.plan_at_node(n, at, Arrival::Depart(id));
    }

    /// The first byte of a request is about to be written: not after the lease has ended.
    pub(super) fn depart(&mut self, n: usize, id: u64) {
        let now = self.now_at(n).mono;
        let Some(flight) = self.flights.get(&id) else { return };
        if now >= self.nodes[n].lease_until {
            self.watch.counts.stopped_at_the_last_moment += 1;
            return self.nodes[n].inbox.push_back(Input::Answered(id));
        }
        let (lane, sending) = (flight.lane, flight.sending.clone());
        self.record([1, self.us.unsigned_abs(), u64::from(sending.number), sending.place.sequence]);
        if !self.owns(n, lane.index()) {
            let (at, no) = (self.now().wall, self.nodes[n].no.0);
            let owner = self.database.slots[slot(lane).index()];
            self.watch.wrong(|| {
                format!("destination {} at {at}: node {no} sends, but {owner:?} is its owner", lane.index())
            });
        }
        self.tell(n, &Note::Sent(lane, &sending));
        let now = self.now().wall;
        let (model, chance, open) = &mut self.models[lane.index()];
        let answer = model.answer(now, *open, sending.attempt.timeout, chance);
        *open += 1;
        let at = self.us + answer.report.elapsed.get() * 1_000;
        if let Some(flight) = self.flights.get_mut(&id) {
            (flight.answer, flight.there) = (Some(answer), true);
        }
        self.plan(at, super::Event::Served(id));
    }

    /// The receiver has answered; its node hears of it when it is awake.
    pub(super) fn served(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        flight.there = false;
        let (n, lane, excused) = (flight.node, flight.lane, flight.excused);
        let (sending, answer) = (flight.sending.clone(), flight.answer);
        self.models[lane.index()].2 -= 1;
        if let Some(answer) = answer {
            self.watch.served(lane, &sending, &answer, excused);
        }
        self.plan_at_node(n, self.us, Arrival::Answered(id));
    }

    /// A request is over for its node: at the receiver, too, if it is still there.
    pub(super) fn drop_flight(&mut self, id: u64) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        if flight.there {
            self.models[flight.lane.index()].2 -= 1;
            self.watch.gone(flight.lane, flight.excused);
        }
        Some(flight)
    }

    fn answered(&mut self, n: usize, id: u64) {
        let now = self.now_at(n).mono;
        let Some(flight) = self.drop_flight(id) else { return };
        let (lane, delivery) = (flight.lane, flight.sending.delivery);
        let elapsed = now.since(flight.sending.attempt.started.mono);
        let cancelled = Report { outcome: Outcome::Cancelled, elapsed, rate_hint: None };
        let report = match flight.answer {
            Some(answer) if now < self.nodes[n].lease_until => answer.report,
            _ => cancelled,
        };
        self.record([
            2,
            self.us.unsigned_abs(),
            report.elapsed.get().unsigned_abs(),
            flight.sending.place.sequence,
        ]);
        if flight.answer.is_some() && !flight.excused && self.owns(n, lane.index()) {
            let answer = Answer { report, would_succeed: false };
            self.tell(n, &Note::Answered(lane, &flight.sending, &answer));
        }
        let draw = self.draws.draw();
        self.step(n, dispatcher::Input::Finished { lane, delivery, report, draw });
    }

    /// A new process: it knows all destinations, and works none.
    pub(super) fn open_lanes(&mut self, n: usize) {
        let now = self.now_at(n);
        for place in 0..self.setup.world.destinations.len() {
            let destination = &self.setup.world.destinations[place];
            let policy = std::sync::Arc::new(destination.policy.clone());
            let account = dispatcher::AccountNo(destination.account);
            let stored = self.database.lane(place);
            let state = restore(Past::Stored(&stored), &policy, false, now, LastStop::Clean);
            let node = &mut self.nodes[n];
            let lane = node.dispatcher.open(account, policy, state, true);
            node.lanes.push(super::node::LaneRecord::default());
            self.watch.know(lane);
            self.step(n, dispatcher::Input::Lose { lane });
        }
        self.nodes[n].tenancy = Tenancy::default();
    }
}

fn number(destination: usize) -> DestinationNo {
    DestinationNo(u32::try_from(destination).expect("few destinations"))
}
