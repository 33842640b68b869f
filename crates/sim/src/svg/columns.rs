//! A series, in no more columns than can be told apart.

use tidegate_core::delivery::HoldReason;
use tidegate_core::time::Millis;

use crate::series::{Series, Step};

/// Columns of a panel at most: below this width they blur.
const MOST: usize = 300;

/// Several steps in one.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub(super) arrived: u64,
    pub(super) sent: u64,
    pub(super) succeeded: u64,
    pub(super) throttled: u64,
    pub(super) failed: u64,
    /// The most at any time.
    pub(super) in_flight: u64,
    /// What waited when most waited, by reason.
    pub(super) held: [u64; HoldReason::ALL.len()],
    /// What waited then with nothing holding it.
    pub(super) in_line: u64,
}

/// Columns of equal length over a stretch of time.
pub(super) struct Columns {
    pub(super) from_ms: i64,
    pub(super) width_ms: i64,
    pub(super) columns: Vec<Column>,
}

impl Columns {
    pub(super) fn of(series: &Series) -> Self {
        let group = series.steps.len().div_ceil(MOST).max(1);
        let columns = series.steps.chunks(group).map(Column::of).collect();
        let width_ms = series.step_ms.max(1).saturating_mul(i64::try_from(group).unwrap_or(1));
        Self { from_ms: series.from_ms, width_ms, columns }
    }
    /// How long one of them is.
    pub(super) const fn width(&self) -> Millis {
        Millis::new(self.width_ms)
    }
    /// Where the last one ends, in milliseconds since 1970.
    pub(super) fn to_ms(&self) -> i64 {
        let count = i64::try_from(self.columns.len().max(1)).unwrap_or(1);
        self.from_ms.saturating_add(self.width_ms.saturating_mul(count))
    }
    /// One figure of each.
    pub(super) fn values(&self, figure: impl Fn(&Column) -> u64) -> Vec<u64> {
        self.columns.iter().map(figure).collect()
    }
}

impl Column {
    fn of(steps: &[Step]) -> Self {
        let waiting = |step: &&Step| {
            step.held.iter().map(|held| u64::from(*held)).sum::<u64>() + u64::from(step.waiting)
        };
        let fullest = steps.iter().max_by_key(waiting).cloned().unwrap_or_default();
        let sum = |figure: fn(&Step) -> u32| steps.iter().map(|step| u64::from(figure(step))).sum();
        Self {
            arrived: sum(|step| step.arrived),
            sent: sum(|step| step.sent),
            succeeded: sum(|step| step.succeeded),
            throttled: sum(|step| step.throttled),
            failed: sum(|step| step.failed),
            in_flight: steps
                .iter()
                .map(|step| u64::from(step.peak_in_flight.max(step.in_flight)))
                .max()
                .unwrap_or(0),
            held: fullest.held.map(u64::from),
            in_line: fullest.waiting.into(),
        }
    }
}
