//! `Retry-After`, read as the contract has it: digits, or one of the three HTTP dates; 1 s to 24 h; anything else is absent.

use std::time::UNIX_EPOCH;

use crate::run::{MILLI, Receipt, Run, SECOND};

/// No wait is shorter …
const LEAST: u64 = SECOND;
/// … nor longer.
const MOST: u64 = 86_400 * SECOND;

pub(super) struct Wait;

impl Wait {
    /// How long an answer asks to wait at least.
    pub(super) fn asked(run: &Run, receipt: &Receipt) -> Option<u64> {
        let text = run.text(receipt.retry_after?).trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let seconds = text.parse::<u64>().unwrap_or(u64::MAX);
            return Some(seconds.saturating_mul(SECOND).clamp(LEAST, MOST));
        }
        let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        let date = i64::try_from(date.as_millis()).ok()?;
        let took = i64::try_from((receipt.end - receipt.t) / MILLI).ok()?;
        let walls = run.walls(receipt.end, receipt.wall_ms? + took);
        // A second for clocks that are read at different moments, where time is real.
        let slack = i64::try_from(run.late() / MILLI).ok()?;
        let least = walls.into_iter().map(|wall| date - wall - slack).min()?;
        Some(u64::try_from(least).unwrap_or(0).saturating_mul(MILLI).clamp(LEAST, MOST))
    }
}
