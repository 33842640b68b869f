//! What nodes have in common beside slots: the clock, orders from one to another, jobs, and the key that
//! seals secrets.

use tidegate_core::slots::{NodeNo, Slot};

use super::cluster::number;
use super::lanes::all;
use super::sql;
use crate::cluster::{ClockLook, OrderNo, Posted};
use crate::job::Job;
use crate::source::{Fault, Result, Row, Source, params};
use crate::writer::now;
use crate::{DestinationNo, codec, load};

/// A look at the database's clock.
pub(crate) fn clock(source: &Source) -> Result<ClockLook> {
    let sent = now();
    let micros = all(source, sql::CLOCK, params![], |row| row.get(0))?;
    Ok(ClockLook { micros: micros.first().copied().unwrap_or(0), sent, received: now() })
}

/// Orders that are open for slots.
pub(crate) fn orders_of_slots(source: &Source, slots: &[Slot]) -> Result<Vec<Posted>> {
    let wanted: Vec<u8> = slots.iter().map(|slot| slot.get()).collect();
    all(source, sql::ORDERS_OF_SLOTS, params![&wanted], posted)
}

/// An order: `no, destination_no, body`.
pub(super) fn posted(row: &Row<'_>) -> Result<Posted> {
    Ok(Posted {
        no: OrderNo(codec::uncount(row.get(0)?)),
        destination: DestinationNo(row.get(1)?),
        body: row.get(2)?,
    })
}

/// Whether an order is open.
pub(crate) fn order_is_open(source: &Source, order: OrderNo) -> Result<bool> {
    Ok(!all(source, sql::ORDER_IS_OPEN, params![codec::count(order.0)], |_| Ok(()))?.is_empty())
}

/// Takes over running jobs whose node is gone.
pub(crate) fn adopt_jobs(source: &Source, me: NodeNo) -> Result<Vec<Job>> {
    all(source, sql::ADOPT_JOBS, params![number(me)], |row| load::job(row).map(|(_, job)| job))
}

/// The name of the mark that says with which key secrets are sealed.
pub(crate) const KEY_FINGERPRINT: &str = "key_fingerprint";

/// A key's fingerprint as that mark has it.
pub(crate) fn key_mark(fingerprint: &[u8]) -> String {
    fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fingerprint that such a mark was made of.
pub(super) fn key_of_mark(mark: &str) -> Option<String> {
    let bytes = mark.as_bytes().chunks(2).map(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}

/// Whether all nodes agree on this value: the first one that comes decides.
pub(crate) fn agreed(source: &Source, name: &str, value: &str) -> Result<bool> {
    all(source, sql::ADD_MARK, params![name, value], |_| Ok(()))?;
    let found = all(source, sql::GET_MARK, params![name], |row| row.get::<String>(0))?;
    let known = found.first().ok_or_else(|| Fault::Strange(format!("the mark {name} is gone")))?;
    Ok(known == value)
}
