//! How fast a job may go on.

use std::time::Duration;

use tidegate_core::sequence::Sequence;

use crate::api::App;
use crate::api::error::ApiError;

/// Deliveries of one step: one commit, and one short look at lanes.
pub(super) const MAX_BATCH: usize = 200;
/// Deliveries of one replay that may be open at a time: enough to keep many lanes busy, too few to fill their windows.
const MAX_OPEN: usize = 1_000;
/// After it was full a replay goes on when there is room for so many: each look for room goes through all that may be open.
const ENOUGH_ROOM: usize = 100;
/// With no room for more, the next look comes after this long, then after twice as long each time: what is held by an operator
/// may stand for days.
const NO_ROOM: Duration = Duration::from_secs(1);
/// But no later than this, which is how late a replay may notice that its deliveries go on.
const NO_ROOM_AT_MOST: Duration = Duration::from_secs(30);

/// How many a step may take at this rate: about a second's worth.
pub(super) fn batch(per_minute: u64) -> usize {
    usize::try_from(per_minute.div_ceil(60)).unwrap_or(MAX_BATCH).clamp(1, MAX_BATCH)
}

/// How long that many last at this rate.
pub(super) fn pause(count: usize, per_minute: u64) -> Duration {
    let millis = (count as u64).saturating_mul(60_000) / per_minute.max(1);
    Duration::from_millis(millis)
}

/// How many more deliveries a job may have open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many.
    For(usize),
    /// None for now: look again after this long.
    NoneFor(Duration),
}

/// The deliveries that a job made and that, as far as is known, are not over yet.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    open: Vec<Sequence>,
    /// Looks in a row that found too little room.
    in_vain: u32,
}

impl Outstanding {
    /// These are new.
    pub(super) fn add(&mut self, made: impl IntoIterator<Item = Sequence>) {
        self.open.extend(made);
    }

    /// Whether no more may be open, as far as is known.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN
    }

    /// How many more may be open. Asks the store only when there seems to be no room, and the longer nothing ends the less
    /// often.
    pub(super) async fn room(&mut self, app: &App) -> Result<Room, ApiError> {
        if self.is_full() || self.in_vain > 0 {
            let open = app.engine.store().open_among(self.open.clone()).await?;
            self.open.retain(|made| open.contains(made));
            if self.open.len() > MAX_OPEN - ENOUGH_ROOM {
                let wait = patience(self.in_vain);
                self.in_vain += 1;
                return Ok(Room::NoneFor(wait));
            }
            self.in_vain = 0;
        }
        Ok(Room::For(MAX_OPEN - self.open.len()))
    }
}

/// How long to wait after so many looks that found too little room.
fn patience(in_vain: u32) -> Duration {
    NO_ROOM.saturating_mul(1 << in_vain.min(10)).min(NO_ROOM_AT_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_the_rate() {
        for per_minute in [1, 59, 60, 1_000, 6_000, 12_000, 600_000] {
            let count = batch(per_minute);
            let made_in_an_hour = 3_600.0 / pause(count, per_minute).as_secs_f64() * count as f64;
            let allowed = per_minute as f64 * 60.0;
            assert!((made_in_an_hour / allowed - 1.0).abs() < 0.02, "{per_minute}: {made_in_an_hour}");
        }
    }
    #[test]
    fn what_stays_full_is_looked_at_ever_less_often_but_for_ever() {
        let waits: Vec<u64> = (0..8).map(|in_vain| patience(in_vain).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(patience(u32::MAX), NO_ROOM_AT_MOST);
    }
}
