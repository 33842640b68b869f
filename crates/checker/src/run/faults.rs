//! What was done to the nodes, and what it may have taken with it.
//!
//! A result dies with its process if that is killed before the result is stored: the request was in flight at the kill, or
//! answered less than the time of a commit before. How long commits take is seen in how long publications take, which
//! are answered after theirs. A stop is no kill: what is answered before or during its drain is stored, and only what it
//! cuts off is not. A node that is frozen or cut off cannot store what it has sent, and another takes over.
//!
//! Each process has its own requests. What a dead one had written may be read after its death, but not after the start of
//! the next: whoever starts that has waited until the receivers had seen the last of the one before. So what comes after
//! the start is the new process's doing, and no fault from before excuses it.

use std::collections::HashMap;

use super::{Ending, NEVER, Receipt, SECOND};
use crate::history::{FaultKind, FaultLine};
use crate::names::{Name, Names};

/// Results are stored within this time, where nothing tells how long commits take, or when exactly the process died …
const STORED_WITHIN: u64 = SECOND;
/// … and where publications do, also if each was stored sooner: the threads at both ends wait for their turn.
const STORED_SOON: u64 = SECOND / 4;
/// So many publications tell.
const TELL: usize = 10;
/// A slow disk is seen in publications that were open so long before the fault.
const SEEN_BEFORE: u64 = 30 * SECOND;
/// A result waits for the commit that is under way, and then for its own.
const COMMITS: u64 = 2;
/// A stop waits for what is in flight, for no longer than this.
const LONGEST_STOP: u64 = 60 * SECOND;
/// After a fault is over: what one node needs to be at its work again.
const RECOVERY: u64 = 5 * SECOND;
/// Where another node takes over, leases must end (10 s), and slots move. A node that has had no room looks again within 10 s.
const LONG_RECOVERY: u64 = 15 * SECOND;

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
    /// What it has sent was seen by then: what comes later is another process's.
    pub seen_until: u64,
    /// Nobody else acts in its place before.
    pub replaced_from: u64,
    /// When the node was back.
    pub over: u64,
    /// So long before it a result may have been waiting for its commit.
    pub commit: u64,
    /// Whether it was noted when it was seen, and happened before.
    noted_late: bool,
}

/// All faults of a run.
#[derive(Debug, Default)]
pub struct Faults {
    /// Kills, stops, pauses and cuts, in the order of time.
    pub outages: Vec<Outage>,
    /// From when to when a disk was full.
    pub full: Vec<(u64, u64)>,
    /// From when to when something else ran short.
    strained: Vec<(u64, u64)>,
    /// Steps of wall clocks, by node: from then on, off by so much.
    clocks: HashMap<Name, Vec<(u64, i64)>>,
    /// Times in which something was going on, merged, in order.
    disturbed: Vec<(u64, u64)>,
    /// When publications were sent and answered, or given up, by the answer.
    published: Vec<(u64, u64)>,
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
        if faults.nodes > 1 {
            faults.outages.iter_mut().for_each(|outage| outage.replaced_from = outage.from);
        }
        faults.disturbed = faults.find_disturbed(&lines);
        faults
    }

    fn take(&mut self, open: &mut HashMap<(Name, FaultKind), Vec<usize>>, node: Name, line: &FaultLine) {
        use FaultKind::{
            Clock, Cut, DiskFree, DiskFull, Heal, Kill, Pause, PowerCut, Ready, Relief, Resume, Start, Stop,
            Strain,
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
                self.outages.push(Outage {
                    kind: line.kind,
                    node,
                    from: t,
                    acts_until,
                    seen_until: acts_until.saturating_add(self.late),
                    replaced_from: if ends_with == Ready { NEVER } else { t },
                    over: NEVER,
                    commit: 0,
                    noted_late: line.detail.by.is_some(),
                });
            }
            Start => {
                for index in open.get(&(node, Ready)).into_iter().flatten() {
                    let outage = &mut self.outages[*index];
                    outage.acts_until = outage.acts_until.min(t);
                    outage.seen_until = outage.seen_until.min(t);
                    outage.replaced_from = outage.replaced_from.min(t);
                }
            }
            Ready | Resume | Heal => {
                let late = t.saturating_add(self.late);
                for index in open.remove(&(node, line.kind)).into_iter().flatten() {
                    let outage = &mut self.outages[index];
                    (outage.over, outage.acts_until) = (t, outage.acts_until.min(t));
                    outage.seen_until = outage.seen_until.min(late);
                    outage.replaced_from = outage.replaced_from.min(t);
                }
            }
            DiskFull => self.full.push((t, NEVER)),
            DiskFree => end(&mut self.full, t),
            Strain => self.strained.push((t, NEVER)),
            Relief => end(&mut self.strained, t),
            Clock => {
                let offset = line.detail.offset_ms.unwrap_or(0);
                self.clocks.entry(node).or_default().push((t, offset));
            }
        }
    }

    fn find_disturbed(&self, lines: &[FaultLine]) -> Vec<(u64, u64)> {
        let outages = self.outages.iter().map(|outage| (outage.from, outage.over));
        let moments = lines.iter().map(|line| (line.t, line.t));
        let recovery = if self.nodes > 1 { LONG_RECOVERY } else { RECOVERY };
        let recovered = |(from, over): (u64, u64)| (from, over.saturating_add(recovery));
        let full = self.full.iter().map(|(from, free)| (*from, free.saturating_add(LONG_RECOVERY)));
        let mut all: Vec<(u64, u64)> =
            outages.chain(moments).chain(self.strained.iter().copied()).map(recovered).chain(full).collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, over) in all {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(over),
                _ => merged.push((from, over)),
            }
        }
        merged
    }

    /// Publications, (answered, sent): they tell how long commits take.
    pub(super) fn set_published(&mut self, mut published: Vec<(u64, u64)>) {
        published.sort_unstable();
        self.published = published;
        for index in 0..self.outages.len() {
            self.outages[index].commit = self.commit_before(&self.outages[index]);
        }
    }

    /// How long a result may have waited for its commit when a fault came.
    fn commit_before(&self, outage: &Outage) -> u64 {
        let at = outage.from;
        let begin =
            self.published.partition_point(|(answered, _)| *answered < at.saturating_sub(SEEN_BEFORE));
        let seen = self.published[begin..].iter().filter(|(_, sent)| *sent < at);
        let took = seen.map(|(answered, sent)| at.min(*answered) - sent);
        let (count, longest) = took.fold((0, 0), |(count, longest), took| (count + 1, took.max(longest)));
        let least = if count < TELL || outage.noted_late { STORED_WITHIN } else { STORED_SOON };
        longest.saturating_mul(COMMITS).max(least)
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
    /// The last time in which everything was calm: before the end of the last node, if none came back.
    pub fn last_calm(&self) -> (u64, u64) {
        let over = |place: usize| place.checked_sub(1).map_or(0, |before| self.disturbed[before].1);
        match self.disturbed.last() {
            Some((from, NEVER)) => (over(self.disturbed.len() - 1), *from),
            _ => (over(self.disturbed.len()), NEVER),
        }
    }
    /// The outage that may have taken the result of this request with it, so that it was sent again by `again`.
    pub fn took_result(&self, request: &Receipt, again: u64) -> Option<usize> {
        self.outages.iter().position(|outage| outage.replaced_from <= again && self.may_take(outage, request))
    }
    fn may_take(&self, outage: &Outage, request: &Receipt) -> bool {
        let answered = request.ending == Ending::Answered;
        if request.t > outage.seen_until || outage.kind == FaultKind::Stop && answered {
            return false;
        }
        outage.from.saturating_sub(request.end.max(self.room_after(request.end))) <= outage.commit
    }
    /// Whether what was learned at this moment may not be known any more at `t`: whoever learned it was killed before its
    /// commit. Where there are several nodes, another may act before it has heard of it.
    pub fn may_forget(&self, learned: u64, t: u64) -> bool {
        let stored_from = learned.max(self.room_after(learned));
        let elsewhere = |outage: &Outage| self.nodes > 1 && outage.over.saturating_add(self.late) >= learned;
        let unstored = |outage: &Outage| {
            outage.kind != FaultKind::Stop
                && outage.seen_until >= learned
                && outage.from <= stored_from.saturating_add(outage.commit)
        };
        self.outages.iter().any(|outage| outage.from <= t && (elsewhere(outage) || unstored(outage)))
    }
    /// What is answered while the disk is full is not stored before there is room.
    fn room_after(&self, at: u64) -> u64 {
        let full = |(from, free): &&(u64, u64)| *from <= at && *free >= at;
        self.full.iter().find(full).map_or(0, |full| full.1)
    }
    /// From each death until what it cost is paid back, where one costs so much time. Deaths in a row add up.
    pub fn paid_back(&self, cost: u64) -> Vec<(u64, u64)> {
        let mut paid = 0;
        let mut deaths: Vec<&Outage> =
            self.outages.iter().filter(|outage| outage.kind != FaultKind::Stop).collect();
        deaths.sort_by_key(|outage| outage.over);
        let debt = |outage: &&Outage| {
            paid = outage.over.max(paid).saturating_add(cost);
            (outage.from, paid)
        };
        deaths.iter().map(debt).collect()
    }
    /// Whether whoever was at work at the first of two moments was hit before the second.
    pub fn is_hit(&self, from: u64, to: u64) -> bool {
        self.outages.iter().any(|outage| outage.from <= to && outage.seen_until >= from)
    }
    /// Whether whoever was at work at the first of two moments may be another than at the second, and not know of it.
    pub fn is_replaced(&self, from: u64, to: u64) -> bool {
        self.outages.iter().any(|outage| outage.replaced_from <= to && outage.seen_until >= from)
    }
    /// Whether a node was down at some time between two moments.
    pub fn is_down(&self, from: u64, to: u64) -> bool {
        self.outages.iter().any(|outage| outage.from <= to && outage.over >= from)
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

/// What goes on ends now.
fn end(stretches: &mut [(u64, u64)], t: u64) {
    stretches.iter_mut().filter(|stretch| stretch.1 == NEVER).for_each(|stretch| stretch.1 = t);
}
