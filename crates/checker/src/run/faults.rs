//! What was done to the nodes, and what it may have taken with it.
//!
//! A result dies with its process if that is killed before the result is stored: the request was in flight at the kill, or
//! answered a moment before. A node that is frozen or cut off cannot store what it has sent, and another takes over.

use std::collections::HashMap;

use super::{NEVER, Receipt, SECOND};
use crate::history::{FaultKind, FaultLine};
use crate::names::{Name, Names};

/// Results are stored within this time, with a calm disk.
const STORED_WITHIN: u64 = 2 * SECOND;
/// With a slow one, before so many later publications are acknowledged by the same writer …
const ACKNOWLEDGED_WITHIN: usize = 20;
/// … and within this time in any case.
const STORED_AT_LAST: u64 = 30 * SECOND;
/// A stop waits for what is in flight, for no longer than this.
const LONGEST_STOP: u64 = 60 * SECOND;
/// After a fault is over: leases that must end (10 s), and slots that move.
const RECOVERY: u64 = 15 * SECOND;

/// A time in which a node could not do its work.
#[derive(Clone, Debug)]
pub struct Outage {
    /// What was done.
    pub kind: FaultKind,
    /// To whom.
    pub node: Name,
    /// Since when.
    pub from: u64,
    /// Until then it may have sent requests whose results nobody stored.
    pub acts_until: u64,
    /// When the node was back.
    pub over: u64,
}

/// All faults of a run.
#[derive(Debug, Default)]
pub struct Faults {
    /// Kills, stops, pauses and cuts, in the order of time.
    pub outages: Vec<Outage>,
    /// From when to when a disk was full.
    pub full: Vec<(u64, u64)>,
    /// Steps of wall clocks, by node: from then on, off by so much.
    clocks: HashMap<Name, Vec<(u64, i64)>>,
    /// Times in which something was going on, merged, in order.
    disturbed: Vec<(u64, u64)>,
    /// When publications that were accepted were sent and answered, by the answer.
    acknowledged: Vec<(u64, u64)>,
    nodes: usize,
    late: u64,
}

impl Faults {
    pub(super) fn new(names: &mut Names, mut lines: Vec<FaultLine>, late: u64) -> Self {
        lines.sort_by_key(|line| line.t);
        let mut faults = Self { late, ..Self::default() };
        let mut open: HashMap<(Name, FaultKind), Vec<usize>> = HashMap::new();
        let mut nodes = Vec::new();
        for line in &lines {
            let node = names.name(&line.node);
            if !nodes.contains(&node) {
                nodes.push(node);
            }
            faults.take(&mut open, node, line);
        }
        faults.nodes = nodes.len();
        faults.disturbed = faults.find_disturbed(&lines);
        faults
    }

    fn take(&mut self, open: &mut HashMap<(Name, FaultKind), Vec<usize>>, node: Name, line: &FaultLine) {
        use FaultKind::{
            Clock, Cut, DiskFree, DiskFull, Heal, Kill, Pause, PowerCut, Ready, Resume, Start, Stop,
        };
        let t = line.t;
        match line.kind {
            Kill | PowerCut | Stop | Pause | Cut => {
                let acts_until = match line.kind {
                    Kill | PowerCut => t,
                    Stop => t.saturating_add(LONGEST_STOP),
                    _ => NEVER,
                };
                let ends_with = match line.kind {
                    Pause => Resume,
                    Cut => Heal,
                    _ => Ready,
                };
                open.entry((node, ends_with)).or_default().push(self.outages.len());
                self.outages.push(Outage { kind: line.kind, node, from: t, acts_until, over: NEVER });
            }
            Start => {
                for index in open.get(&(node, Ready)).into_iter().flatten() {
                    let outage = &mut self.outages[*index];
                    outage.acts_until = outage.acts_until.min(t);
                }
            }
            Ready | Resume | Heal => {
                for index in open.remove(&(node, line.kind)).into_iter().flatten() {
                    let outage = &mut self.outages[index];
                    (outage.over, outage.acts_until) = (t, outage.acts_until.min(t));
                }
            }
            DiskFull => self.full.push((t, NEVER)),
            DiskFree => self.full.iter_mut().filter(|full| full.1 == NEVER).for_each(|full| full.1 = t),
            Clock => {
                let offset = line.detail.offset_ms.unwrap_or(0);
                self.clocks.entry(node).or_default().push((t, offset));
            }
        }
    }

    fn find_disturbed(&self, lines: &[FaultLine]) -> Vec<(u64, u64)> {
        let outages = self.outages.iter().map(|outage| (outage.from, outage.over));
        let moments = lines.iter().map(|line| (line.t, line.t));
        let mut all: Vec<(u64, u64)> = outages.chain(self.full.iter().copied()).chain(moments).collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, over) in all {
            let over = over.saturating_add(RECOVERY);
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(over),
                _ => merged.push((from, over)),
            }
        }
        merged
    }

    /// Publications that were accepted: (answered, sent).
    pub(super) fn set_acknowledged(&mut self, mut acknowledged: Vec<(u64, u64)>) {
        acknowledged.sort_unstable();
        self.acknowledged = acknowledged;
    }

    /// How many nodes there are.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether nothing was going on between two moments, nor in the seconds before.
    pub fn is_calm(&self, from: u64, to: u64) -> bool {
        let next = self.disturbed.partition_point(|(_, over)| *over < from);
        self.disturbed.get(next).is_none_or(|(begin, _)| *begin > to)
    }
    /// From when on everything was calm.
    pub fn calm_since(&self) -> u64 {
        self.disturbed.last().map_or(0, |(_, over)| *over)
    }
    /// The outage that may have taken the result of this request with it, so that it was sent again by `again`.
    pub fn took_result(&self, request: &Receipt, again: u64) -> Option<usize> {
        self.outages.iter().position(|outage| outage.from <= again && self.may_take(outage, request))
    }
    fn may_take(&self, outage: &Outage, request: &Receipt) -> bool {
        if request.t > outage.acts_until.saturating_add(self.late) {
            return false;
        }
        // What was answered while the disk was full is not stored before there is room.
        let stored_from = |(from, free): &(u64, u64)| *from <= request.end && *free >= request.end;
        let full_until = self.full.iter().find(|full| stored_from(full)).map_or(0, |full| full.1);
        let waited = outage.from.saturating_sub(request.end.max(full_until));
        waited <= STORED_WITHIN
            || waited <= STORED_AT_LAST
                && self.nodes <= 1
                && self.acknowledged_between(request.end, outage.from) <= ACKNOWLEDGED_WITHIN
    }
    fn acknowledged_between(&self, from: u64, to: u64) -> usize {
        let first = self.acknowledged.partition_point(|(answered, _)| *answered < from);
        let answered = self.acknowledged[first..].iter().take_while(|(answered, _)| *answered <= to);
        answered.filter(|(_, sent)| *sent >= from).count()
    }
    /// Whether a node was hit between two moments.
    pub fn is_hit(&self, from: u64, to: u64) -> bool {
        self.outages
            .iter()
            .any(|outage| outage.from <= to && outage.acts_until.saturating_add(self.late) >= from)
    }
    /// Whether a node was frozen or cut off at some time between two moments.
    pub fn is_frozen(&self, from: u64, to: u64) -> bool {
        let frozen = |outage: &&Outage| matches!(outage.kind, FaultKind::Pause | FaultKind::Cut);
        let late = self.late;
        self.outages
            .iter()
            .filter(frozen)
            .any(|outage| outage.from <= to && outage.over.saturating_add(late) >= from)
    }

    /// How far off the sender's wall clock may have been at `t`, give or take `slack`, in milliseconds.
    pub fn offsets(&self, t: u64, slack: u64) -> Vec<i64> {
        let mut offsets = Vec::new();
        if self.clocks.len() < self.nodes.max(1) {
            offsets.push(0);
        }
        let (from, to) = (t.saturating_sub(slack), t.saturating_add(slack));
        for steps in self.clocks.values() {
            let before = steps.partition_point(|(at, _)| *at < from);
            offsets.push(before.checked_sub(1).map_or(0, |last| steps[last].1));
            offsets.extend(steps[before..].iter().take_while(|(at, _)| *at <= to).map(|(_, offset)| *offset));
        }
        offsets
    }
    /// Whether a clock was set between two moments, ends included.
    pub fn clock_was_set(&self, from: u64, to: u64) -> bool {
        self.clocks.values().flatten().any(|(at, _)| (from..=to).contains(at))
    }
    /// Whether no clock was ever set.
    pub fn clocks_are_true(&self) -> bool {
        self.clocks.is_empty()
    }
    /// How often a clock was set back before `t`.
    pub fn set_back_before(&self, t: u64) -> usize {
        let back = |steps: &Vec<(u64, i64)>| {
            let offsets = std::iter::once(0).chain(steps.iter().map(|(_, offset)| *offset));
            let pairs = steps.iter().zip(offsets);
            pairs.filter(|((at, offset), before)| *at <= t && offset < before).count()
        };
        self.clocks.values().map(back).sum()
    }
    /// The most that a clock was ahead of the true time until `t`, in milliseconds.
    pub fn most_ahead_until(&self, t: u64) -> i64 {
        let steps = self.clocks.values().flatten().filter(|(at, _)| *at <= t);
        steps.map(|(_, offset)| *offset).max().unwrap_or(0).max(0)
    }
    /// Steps of clocks that were made while their node was down, or in the second around a kill: nobody can tell them from
    /// time that has passed.
    pub fn unseen_steps(&self) -> Vec<u64> {
        let mut unseen = Vec::new();
        for (node, steps) in &self.clocks {
            let down = |outage: &&Outage| outage.node == *node;
            for (at, _) in steps {
                let hidden = self.outages.iter().filter(down).any(|outage| {
                    outage.from <= at.saturating_add(SECOND) && outage.over.saturating_add(SECOND) >= *at
                });
                if hidden {
                    unseen.push(*at);
                }
            }
        }
        unseen.sort_unstable();
        unseen
    }
}
