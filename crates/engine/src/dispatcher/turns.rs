//! Whose turn it is: accounts in turn, and destinations in turn within an account, so that 180 deliveries for one
//! destination take 180 turns, and others have theirs in between.
//!
//! There is one ring per degree of [`Trust`], and the rings take turns as well: when doubtful lanes hold all they may,
//! theirs rests and the others go on.

use std::collections::VecDeque;

use super::capacity::Trust;
use super::{AccountNo, LaneId};

#[derive(Debug, Default)]
pub(super) struct Turns {
    rings: [Ring; Trust::ALL.len()],
    next: usize,
}

#[derive(Debug, Default)]
struct Ring {
    accounts: VecDeque<AccountNo>,
    lanes: Vec<VecDeque<LaneId>>,
}

impl Turns {
    pub(super) fn push(&mut self, trust: Trust, account: AccountNo, lane: LaneId) {
        let ring = &mut self.rings[trust as usize];
        let place = account.0 as usize;
        if ring.lanes.len() <= place {
            ring.lanes.resize_with(place + 1, VecDeque::new);
        }
        if ring.lanes[place].is_empty() {
            ring.accounts.push_back(account);
        }
        ring.lanes[place].push_back(lane);
    }

    /// The next lane of a ring that may have one more slot.
    pub(super) fn pop(&mut self, admits: impl Fn(Trust) -> bool) -> Option<LaneId> {
        for offset in 0..self.rings.len() {
            let place = (self.next + offset) % self.rings.len();
            if self.rings[place].accounts.is_empty() || !admits(Trust::ALL[place]) {
                continue;
            }
            self.next = (place + 1) % self.rings.len();
            return self.rings[place].pop();
        }
        None
    }
}

impl Ring {
    fn pop(&mut self) -> Option<LaneId> {
        let account = self.accounts.pop_front()?;
        let lanes = &mut self.lanes[account.0 as usize];
        let lane = lanes.pop_front();
        if !lanes.is_empty() {
            self.accounts.push_back(account);
        }
        lane
    }
}
