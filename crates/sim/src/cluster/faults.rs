//! What goes wrong: a node dies, freezes, is cut off from the database, leaves and comes back; the database is away.

use tidegate_core::slots::{LEASE, Slot};
use tidegate_engine::dispatcher::Dispatcher;

use super::Cluster;
use super::clock::Clock;
use super::node::{Input, Node, State};
use super::work::{Arrival, Ask, Event};

/// A slot of a dead node is worked again within its lease and so long, in microseconds.
const REVIVED_WITHIN: i64 = 2_000_000;
/// News is read so often even if nobody told of any.
const READ_EVERY: i64 = 200_000;
const LOOK_AT_CLOCK_EVERY: i64 = 500_000;
const SECOND: i64 = 1_000_000;
/// A pause that ends within the lease lets go first what was about to be written: that window is some microseconds wide, and no
/// rule could close it.
const WITHIN_LEASE: i64 = 7_000_000;

impl Cluster {
    pub(super) fn start(&mut self, n: usize) {
        if self.nodes[n].state != State::Down {
            return;
        }
        let registered = if self.is_away() { None } else { self.database.register(self.us) };
        let Some(registered) = registered else { return self.plan(self.us + SECOND / 2, Event::Start(n)) };
        let (drift, skew) = (self.setup.faults.drift_ppm, self.setup.faults.skew.get().unsigned_abs() * 1_000);
        let ppm = self.fate.below(2 * drift + 1).cast_signed() - drift.cast_signed();
        let skew = self.fate.below(2 * skew + 1).cast_signed() - skew.cast_signed();
        let life = self.nodes[n].life + 1;
        let node = &mut self.nodes[n];
        *node = Node {
            life,
            state: State::Starting,
            clock: Clock::new(self.us, ppm, skew),
            no: registered.no,
            seat: registered.seat,
            well_since: self.us,
            cursors: registered.cursors,
            sequence: registered.sequence,
            dispatcher: Dispatcher::new(self.setup.world.slots),
            ..Node::down()
        };
        node.writer.groups = registered.own_groups;
        node.dispatcher.hold_starts(true);
        self.open_lanes(n);
        self.ask_first(n);
    }

    /// Something reaches a node, or waits until it is awake.
    pub(super) fn arrive(&mut self, n: usize, life: u64, arrival: Arrival) {
        if !self.nodes[n].is(life) {
            return;
        }
        if self.nodes[n].is_paused() {
            return self.nodes[n].deferred.push(arrival);
        }
        self.take(n, arrival);
    }

    /// Takes in what has arrived.
    fn take(&mut self, n: usize, arrival: Arrival) {
        let node = &self.nodes[n];
        let (member, writer) = (node.task.token, node.writer.token);
        match arrival {
            Arrival::Published { publisher, at } => self.take_publication(n, publisher, at),
            Arrival::Past(accepted) => self.past(n, accepted),
            Arrival::Depart(id) => self.depart(n, id),
            Arrival::Answered(id) => self.nodes[n].inbox.push_back(Input::Answered(id)),
            Arrival::Renewed { token, sent, roll } if token == member => self.renewed(n, sent, &roll),
            Arrival::Claimed { token, claimed } if token == member => self.claimed(n, claimed),
            Arrival::GaveBack { token } if token == member => self.rest(n),
            Arrival::Begun { token, stale } if token == writer => self.begun(n, stale),
            Arrival::Committed { token } if token == writer => self.committed(n),
            Arrival::Recovered { token, groups } if token == writer => self.recovered(n, groups),
            Arrival::News { token, cursors, brought } if token == node.news => {
                let node = &mut self.nodes[n];
                (node.cursors, node.news) = (cursors, 0);
                if !brought.is_empty() {
                    let survived = std::mem::take(&mut node.missed_notice) && node.by_poll;
                    self.watch.counts.lost_notices_survived += u64::from(survived);
                }
                self.nodes[n].inbox.push_back(Input::News(Some(brought)));
            }
            Arrival::Refilled { lane, tenure, refill } => {
                self.nodes[n].inbox.push_back(Input::Refilled { lane, tenure, refill });
            }
            Arrival::NotRefilled { lane, tenure } => {
                self.plan_at_node(n, self.us + SECOND, Arrival::ReadAgain { lane, tenure });
            }
            Arrival::ReadAgain { lane, tenure } => self.ask_refill(n, lane, tenure),
            Arrival::Overdue { token, overdue } if token == node.sweep => {
                self.nodes[n].sweep = 0;
                self.nodes[n].inbox.push_back(Input::Overdue(Some(overdue)));
            }
            Arrival::Failed(token) if token == node.sweep => {
                self.nodes[n].sweep = 0;
                self.nodes[n].inbox.push_back(Input::Overdue(None));
            }
            Arrival::Clock { micros, sent } => {
                let clock = &mut self.nodes[n].clock;
                clock.follow(micros, sent, clock.elapsed(self.us));
            }
            Arrival::LookAtClock => {
                self.look_at_clock(n);
                self.plan_at_node(n, self.us + LOOK_AT_CLOCK_EVERY, Arrival::LookAtClock);
            }
            Arrival::Failed(token) if token == member => self.member_failed(n),
            Arrival::Failed(token) if token == writer => self.writer_failed(n),
            Arrival::Failed(token) if token == node.news => {
                self.nodes[n].news = 0;
                self.nodes[n].inbox.push_back(Input::News(None));
            }
            Arrival::Noticed => {
                self.nodes[n].by_poll = false;
                self.nodes[n].inbox.push_back(Input::Noticed);
            }
            Arrival::Freed => {
                self.nodes[n].task.freed = true;
                self.nudge(n);
            }
            Arrival::Round(token) if token == member => self.round(n),
            Arrival::TryAgain(token) if token == writer => self.try_again(n),
            Arrival::Alarm(token) if token == node.alarm.0 => self.nodes[n].alarm.1 = i64::MAX,
            Arrival::Poll => {
                self.nodes[n].by_poll = true;
                self.nodes[n].inbox.push_back(Input::Noticed);
                self.plan_at_node(n, self.us + READ_EVERY, Arrival::Poll);
            }
            Arrival::Second => {
                if self.nodes[n].sweep == 0 {
                    let token = self.token();
                    self.nodes[n].sweep = token;
                    self.nodes[n].dispatcher.reads(true);
                    self.ask(n, Ask::Overdue { token });
                    self.plan_at_node(n, self.us + 3 * SECOND, Arrival::Failed(token));
                }
                self.nodes[n].inbox.push_back(Input::Second);
                self.plan_at_node(n, self.us + SECOND, Arrival::Second);
            }
            Arrival::Left => return self.stop(n),
            Arrival::MustLeave => return self.crash(n),
            // An answer that nobody waits for any more.
            _ => return,
        }
        self.turn(n);
    }

    pub(super) fn plan_fault(&mut self) {
        if let Some(mean) = self.setup.faults.every.filter(|_| !self.healed) {
            #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
            let wait = self.fate.exponential(mean.get() as f64 * 1_000.0) as i64;
            self.plan(self.us + wait, Event::Fault);
        }
    }

    pub(super) fn go_wrong(&mut self) {
        if self.healed {
            return;
        }
        self.plan_fault();
        let n = usize::try_from(self.fate.below(self.nodes.len() as u64)).unwrap_or(0);
        let kind = self.fate.below(100);
        if kind >= 92 {
            return self.take_database_away();
        }
        if self.nodes[n].state != State::Up || self.nodes[n].is_paused() {
            return;
        }
        match kind {
            0..25 => self.crash(n),
            25..55 => self.pause(n),
            55..72 => {
                let length = self.fate.below(25_000_000).cast_signed();
                self.watch.counts.cuts += 1;
                self.nodes[n].cut_until = Some(self.us + length);
                self.disturb(n, length);
            }
            _ => {
                self.watch.counts.leaves += 1;
                self.nodes[n].task.leave = true;
                self.plan_at_node(n, self.us + 17 * SECOND, Arrival::MustLeave);
                self.disturb(n, 0);
                self.nudge(n);
                self.turn(n);
            }
        }
    }

    /// Something is wrong with a node for so long: until then, and from now on, it is not asked for anything.
    fn disturb(&mut self, n: usize, length: i64) {
        self.nodes[n].well_since = self.nodes[n].well_since.max(self.us + length);
        self.watch.disturbed_at = self.watch.disturbed_at.max(self.us + length);
    }

    fn take_database_away(&mut self) {
        let length = self.fate.below(6_000_000).cast_signed();
        self.away_until = Some(self.us + length);
        self.watch.counts.aways += 1;
        self.database.restart();
        (0..self.nodes.len()).for_each(|n| self.disturb(n, length));
    }

    fn pause(&mut self, n: usize) {
        let longest = self.setup.faults.longest_pause.get().unsigned_abs() * 1_000;
        let length = self.fate.below(longest).cast_signed();
        if length < WITHIN_LEASE {
            let departing = |id: &u64| self.flights[id].node == n && self.flights[id].answer.is_none();
            let departing: Vec<u64> = self.flights.keys().copied().filter(departing).collect();
            departing.into_iter().for_each(|id| self.depart(n, id));
        }
        self.watch.counts.pauses += 1;
        self.disturb(n, length);
        let mid_turn = self.fate.happens(0.5);
        let node = &mut self.nodes[n];
        (node.paused_until, node.mid_turn, node.just_woke) = (Some(self.us + length), mid_turn, true);
        let life = node.life;
        self.plan(self.us + length, Event::Wake(n, life));
    }

    /// What came meanwhile is taken in, in any order: timers, answers and sockets are all ready at once.
    pub(super) fn wake_up(&mut self, n: usize, life: u64) {
        if !self.nodes[n].is(life) {
            return;
        }
        self.nodes[n].paused_until = None;
        let mut deferred = std::mem::take(&mut self.nodes[n].deferred);
        while !deferred.is_empty() && self.nodes[n].is(life) {
            let next = usize::try_from(self.fate.below(deferred.len() as u64)).unwrap_or(0);
            let arrival = deferred.swap_remove(next);
            self.take(n, arrival);
        }
    }

    pub(super) fn crash(&mut self, n: usize) {
        self.watch.counts.crashes += 1;
        let slots: Vec<Slot> = Slot::all()
            .filter(|slot| self.database.slots[slot.index()].owner == Some(self.nodes[n].no))
            .filter(|slot| self.lanes_of(*slot).next().is_some())
            .collect();
        self.stop(n);
        let lanes: Vec<usize> = slots.iter().flat_map(|slot| self.lanes_of(*slot)).collect();
        lanes.into_iter().for_each(|lane| self.tell_lost(lane));
        let at = self.us + LEASE.get() * 1_000 + REVIVED_WITHIN;
        self.plan(at, Event::Revived(slots, self.us));
        self.disturb(n, 0);
    }

    /// The process ends: connections are closed, and publishers without an answer ask another.
    pub(super) fn stop(&mut self, n: usize) {
        let own: Vec<u64> = self.flights.iter().filter(|(_, it)| it.node == n).map(|(id, _)| *id).collect();
        own.into_iter().for_each(|id| drop(self.drop_flight(id)));
        for publisher in std::mem::take(&mut self.nodes[n].asking) {
            self.publisher_failed(n, publisher);
        }
        self.database.close(self.nodes[n].seat);
        let node = &mut self.nodes[n];
        (node.state, node.paused_until, node.cut_until) = (State::Down, None, None);
        node.life += 1;
        let life = node.life;
        let down = 100_000 + self.fate.below(20_000_000).cast_signed();
        self.plan(self.us + down, Event::Join(n, life));
    }

    pub(super) fn join_again(&mut self, n: usize, life: u64) {
        if self.nodes[n].life == life {
            self.disturb(n, 0);
            self.start(n);
        }
    }

    /// A node died a lease and two seconds ago: unless something else went wrong since, others work its slots.
    pub(super) fn check_revival(&mut self, slots: &[Slot], crashed_at: i64) {
        let well = |node: &Node| node.state == State::Up && node.well_since <= crashed_at;
        if self.watch.disturbed_at > crashed_at || !self.nodes.iter().any(well) {
            return;
        }
        for slot in slots {
            let row = self.database.slots[slot.index()];
            let works = |node: &Node| {
                let lanes = self.lanes_of(*slot);
                Some(node.no) == row.owner && lanes.into_iter().all(|lane| node.lanes[lane].epoch == Some(row.epoch))
            };
            if self.nodes.iter().filter(|node| node.state == State::Up).any(works) {
                self.watch.counts.revivals += 1;
            } else {
                let at = self.now().wall;
                self.watch.wrong(|| format!("slot {} at {at}: nobody works it again: {row:?}", slot.get()));
            }
        }
    }
}
