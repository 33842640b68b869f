//! Lanes as they are stored, whoever works them, and what is counted of them: by this node, and by all others.

use tidegate_core::slots::{Seat, Slot};

use super::sql;
use crate::counts::Counts;
use crate::lane::StoredLane;
use crate::shared::{Other, Sum};
use crate::source::{Fault, Result, Row, Source, Value};
use crate::{AccountNo, DestinationNo, load};

/// The lanes of slots.
pub(crate) fn lanes_of_slots(source: &Source, slots: &[Slot]) -> Result<Vec<StoredLane>> {
    let wanted: Vec<u8> = slots.iter().map(|slot| slot.get()).collect();
    all(source, sql::LANES_OF_SLOTS, &[Value::from(&wanted)], load::lane)
}

/// What was counted on this seat.
pub(super) fn own_counts(source: &Source, seat: Seat) -> Result<Counts> {
    let seat = [Value::from(i64::from(seat.get()))];
    let mut counts = Counts::default();
    counts.lanes.extend(all(source, sql::LOAD_LANE_COUNTS, &seat, load::lane_counts)?);
    counts.accounts.extend(all(source, sql::LOAD_ACCOUNT_TALLIES, &seat, load::account_tally)?);
    Ok(counts)
}

/// What was counted on all others.
pub(super) fn other_counts(source: &Source, seat: Seat) -> Result<Vec<Other>> {
    all(source, sql::OTHER_COUNTS, &[Value::from(i64::from(seat.get()))], |row| {
        let (destination, account) = (DestinationNo(row.get(0)?), AccountNo(row.get(1)?));
        Ok(Other { destination, account, sum: Sum { open: row.get(2)?, bytes: row.get(3)? } })
    })
}

/// All rows of a statement that only PostgreSQL has.
pub(super) fn all<T>(
    source: &Source,
    sql: &'static str,
    values: &[Value<'_>],
    mut turn: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let Source::Postgres(link) = source else { return Ok(Vec::new()) };
    let rows = link.look(sql, values).map_err(Fault::Postgres)?;
    rows.iter().map(|row| turn(&Row::Postgres(row))).collect()
}
