//! What the database does with what it is asked.

use std::rc::Rc;

use tidegate_core::lane::LastStop;
use tidegate_core::slots::{NodeNo, Slot};

use super::Cluster;
use super::database::{Applied, Busy, Granted};
use super::node::State;
use super::work::{Arrival, Ask, Claimed, Event, Group};
use crate::run::Note;

/// Who waits for a lock looks again after so long …
const LOCKED: i64 = 2_000;
/// … and gives up after that.
const PATIENCE: i64 = 1_000_000;
/// Making a commit durable takes at least so long, and up to twice that.
const FSYNC: i64 = 900;

impl Cluster {
    pub(super) fn serve(&mut self, n: usize, life: u64, ask: Ask) {
        if !self.nodes[n].is(life) {
            return;
        }
        if self.is_away() {
            return self.refuse(n, &ask);
        }
        let (node, seat) = (self.nodes[n].no, self.nodes[n].seat);
        match ask {
            Ask::Renew { token, sent, leaving } => {
                let roll = self.database.renew(node, leaving, self.us);
                match roll.map(Box::new) {
                    Some(roll) => self.answer(n, Arrival::Renewed { token, sent, roll }),
                    None => self.crash(n),
                }
            }
            Ask::Claim { token, ref slots, asked_at } => match self.database.claim(node, slots, self.us) {
                Ok(granted) => self.grant(n, token, granted),
                Err(Busy) => {
                    self.watch.counts.claims_that_waited += u64::from(asked_at == 0);
                    self.wait_for_lock(n, ask);
                }
            },
            Ask::GiveBack { token, ref slots, .. } => {
                match self.database.give_back(node, seat, slots, self.us) {
                    Ok(()) => {
                        self.announce(n, true);
                        self.answer(n, Arrival::GaveBack { token });
                    }
                    Err(Busy) => self.wait_for_lock(n, ask),
                }
            }
            // A node that has given up on its connection waits for no answer on it.
            Ask::Begin { token, .. } | Ask::Commit { token, .. } | Ask::Recover { token }
                if self.nodes[n].writer.token != token => {}
            Ask::Begin { token, ref group } => {
                match self.database.begin((node, seat), token, group, self.us) {
                    Ok(Some(stale)) => self.answer(n, Arrival::Begun { token, stale }),
                    Ok(None) => self.crash(n),
                    Err(Busy) => self.wait_for_lock(n, ask),
                }
            }
            Ask::Commit { token, group } => self.commit(n, token, &group),
            Ask::Recover { token } => match self.database.groups(seat, self.us) {
                Ok(groups) => self.answer(n, Arrival::Recovered { token, groups }),
                Err(Busy) => self.wait_for_lock(n, ask),
            },
            Ask::News { token, mut cursors, held } => {
                let brought = self.database.news(&mut cursors, &held);
                self.answer(n, Arrival::News { token, cursors, brought });
            }
            Ask::Refill { lane, tenure } => {
                let now = self.wall_at(n);
                let refill = self.database.backing.refill(self.nodes[n].dispatcher.lane(lane), now);
                self.answer(n, Arrival::Refilled { lane, tenure, refill: Box::new(refill) });
            }
            Ask::Clock { sent } => {
                let micros = self.database_micros();
                self.answer(n, Arrival::Clock { micros, sent });
            }
            Ask::Overdue { token } => {
                let mut overdue = self.database.backing.stale(self.wall_at(n));
                let here = |lane: usize| self.nodes[n].tenancy.holds(super::work::slot(self.lane_id(lane)));
                overdue.retain(|(lane, _)| here(*lane));
                self.answer(n, Arrival::Overdue { token, overdue });
            }
            Ask::Announce { freed } => self.announce(n, freed),
            Ask::Leave => {
                self.database.leave(node);
                self.announce(n, true);
                self.answer(n, Arrival::Left);
            }
        }
    }

    /// There is no database: whoever asks is told so by its machine.
    fn refuse(&mut self, n: usize, ask: &Ask) {
        match ask {
            Ask::Renew { token, .. }
            | Ask::Claim { token, .. }
            | Ask::GiveBack { token, .. }
            | Ask::Begin { token, .. }
            | Ask::Commit { token, .. }
            | Ask::Recover { token }
            | Ask::Overdue { token }
            | Ask::News { token, .. } => self.answer(n, Arrival::Failed(*token)),
            Ask::Refill { lane, tenure } => {
                self.answer(n, Arrival::NotRefilled { lane: *lane, tenure: *tenure });
            }
            Ask::Clock { .. } | Ask::Announce { .. } | Ask::Leave => {}
        }
    }

    fn wait_for_lock(&mut self, n: usize, mut ask: Ask) {
        if let Ask::Claim { token, asked_at, .. } | Ask::GiveBack { token, asked_at, .. } = &mut ask {
            if *asked_at == 0 {
                *asked_at = self.us.max(1);
            } else if self.us - *asked_at > PATIENCE {
                let token = *token;
                return self.answer(n, Arrival::Failed(token));
            }
        }
        let life = self.nodes[n].life;
        self.plan(self.us + LOCKED, Event::AtDatabase { node: n, life, ask });
    }

    /// Slots have changed hands.
    fn grant(&mut self, n: usize, token: u64, granted: Vec<Granted>) {
        let mut claimed = Vec::with_capacity(granted.len());
        let mut moved = false;
        for Granted { slot, epoch, last_stop, from } in granted {
            let lanes: Vec<usize> = self.lanes_of(slot).collect();
            let first = epoch.0 == 1;
            if !lanes.is_empty() && !first {
                moved = true;
                match last_stop {
                    LastStop::Clean => self.watch.counts.hand_overs += 1,
                    LastStop::Crash => self.watch.counts.take_overs += 1,
                }
            }
            if last_stop == LastStop::Crash {
                lanes.iter().for_each(|lane| self.lose_lane(*lane, from));
            }
            let lanes = lanes.into_iter().map(|lane| self.database.lane(lane)).collect();
            claimed.push(Claimed { slot, epoch, last_stop, lanes });
        }
        let (storm, life) = (self.setup.faults.storms, self.nodes[n].life);
        if moved && !self.healed && self.fate.happens(storm) {
            self.watch.counts.storms += 1;
            let soon = self.fate.below(30_000).cast_signed();
            self.plan(self.us + soon, Event::Crash(n, life));
        }
        self.answer(n, Arrival::Claimed { token, claimed });
    }

    /// A lane is taken from whoever had it: requests that it still has out are excused only if it is frozen.
    fn lose_lane(&mut self, lane: usize, from: Option<NodeNo>) {
        let now = self.now();
        for flight in self.flights.values_mut().filter(|it| it.there && it.lane.index() == lane) {
            let node = &self.nodes[flight.node];
            if node.is_paused() {
                self.watch.counts.overlaps += u64::from(!flight.excused);
                flight.excused = true;
            } else if !flight.excused {
                self.watch.wrong(|| {
                    let (node, sequence) = (node.no.0, flight.sending.place.sequence);
                    format!("destination {lane} at {}: taken from {from:?}, but node {node} has {sequence} out", now.wall)
                });
            }
        }
        self.tell_lost(lane);
    }

    /// For the watchers: what was in flight in a lane, or answered and not stored, counts no more.
    pub(super) fn tell_lost(&mut self, lane: usize) {
        let id = self.lane_id(lane);
        self.tell(0, &Note::Lost(id));
    }

    fn commit(&mut self, n: usize, token: u64, group: &Rc<Group>) {
        let seat = self.nodes[n].seat;
        let doubtful = !self.healed && self.fate.happens(self.setup.faults.doubtful_commits);
        if doubtful && self.fate.happens(0.5) {
            self.database.close(seat);
            self.watch.counts.doubtful_lost += 1;
            return self.answer(n, Arrival::Failed(token));
        }
        let Some(applied) = self.database.commit(seat, token, group, self.us) else {
            return self.answer(n, Arrival::Failed(token));
        };
        self.note_commit(n, &applied);
        if doubtful {
            self.watch.counts.doubtful_made += 1;
            return self.answer(n, Arrival::Failed(token));
        }
        let fsync = FSYNC + self.wire.below(FSYNC.unsigned_abs()).cast_signed();
        if !self.is_cut(n) {
            self.plan_at_node(n, self.us + fsync, Arrival::Committed { token });
        }
    }

    fn note_commit(&mut self, n: usize, applied: &Applied) {
        self.watch.counts.stale_refused += applied.refused;
        for (lane, delivery) in &applied.accepted {
            self.record([3, self.us.unsigned_abs(), delivery.place.sequence, lane.index() as u64]);
            self.tell(n, &Note::Accepted(*lane, delivery));
        }
        for (lane, delivery) in &applied.settled {
            self.record([4, self.us.unsigned_abs(), delivery.place.sequence, u64::from(delivery.attempts_made)]);
            self.tell(n, &Note::Settled(*lane, delivery));
        }
        for (lane, as_of) in &applied.kept {
            self.tell(n, &Note::Kept(*lane, *as_of));
        }
    }

    /// Whoever listens hears of it; some notices are lost, and some are late.
    fn announce(&mut self, n: usize, freed: bool) {
        for other in (0..self.nodes.len()).filter(|other| *other != n) {
            if self.nodes[other].state == State::Down || self.is_cut(other) {
                continue;
            }
            let (lost, late) = (self.setup.faults.lost_notices, self.setup.faults.lost_notices);
            if !self.healed && self.fate.happens(lost) {
                self.nodes[other].missed_notice |= !freed;
                continue;
            }
            let delay = if !self.healed && self.fate.happens(late) { self.fate.below(2_000_000) } else { 0 };
            let at = self.us + self.travel() + delay.cast_signed();
            self.plan_at_node(other, at, if freed { Arrival::Freed } else { Arrival::Noticed });
        }
    }

    /// Whether a node works a lane by the database's word, not only by its own.
    pub(super) fn owns(&self, n: usize, lane: usize) -> bool {
        let node = &self.nodes[n];
        let row = self.database.slots[Slot::of(u32::try_from(lane).unwrap_or(0)).index()];
        row.owner == Some(node.no) && node.lanes[lane].epoch == Some(row.epoch)
    }
}
