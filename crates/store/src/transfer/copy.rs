//! Moving rows: one thread reads ahead in the source, this one writes batches to the target.

use std::borrow::Cow;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Builder;

use super::{Doing, Key, Place, Plan, Progress, Stage, TransferError, storable};
use crate::postgres::{Rows, Target};
use crate::source::{Cell, FromCell as _, Row, Value};
use crate::sqlite::Origin;

/// Rows of one batch at most: what is lost when it is cut off is moved again within a moment.
const BATCH_ROWS: u64 = 5_000;
/// Bytes of texts and blobs in one batch, about: one row more may be as large as a payload can be.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that are read ahead.
const AHEAD: usize = 2;

/// Rows of one table, in the order of its key.
pub(crate) struct Batch {
    /// The number of its table among the plans.
    pub(crate) table: usize,
    pub(crate) rows: Rows<'static>,
    /// How many.
    pub(crate) count: u64,
    /// The key of the last one.
    pub(crate) last: Vec<Key>,
    /// Numbers by which they belong into partitions.
    pub(crate) numbers: Vec<i64>,
    bytes: usize,
}

/// Moves what is not moved yet.
pub(super) fn copy(
    origin: &mut Origin,
    target: &mut Target,
    plans: &[Plan],
    totals: &[u64],
    tell: &mut dyn FnMut(Progress),
) -> Result<(), TransferError> {
    let place = target.place().clone();
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(AHEAD);
        let read = move || read(origin, plans, &place, &send);
        let reading = Builder::new().name("transfer-read".to_owned()).spawn_scoped(scope, read);
        let reading = reading.map_err(|error| TransferError::Thread(error.to_string()))?;
        for batch in receive {
            let number = batch.table;
            target.write(&plans[number], batch)?;
            let (_, _, rows) = target.place().position(plans);
            let all_rows = target.place().rows_before(plans, totals);
            let (of, all_of) = (totals[number], totals.iter().sum());
            let table = plans[number].table.name;
            tell(Progress { doing: Doing::Moving, table, rows, of, all_rows, all_of });
        }
        reading.join().map_err(|_| TransferError::Thread("reading the source".to_owned()))??;
        target.advance(Stage::Copied)
    })
}

/// Reads all that comes after a place. Ends early where nobody takes it any more.
fn read(
    origin: &Origin,
    plans: &[Plan],
    place: &Place,
    send: &SyncSender<Batch>,
) -> Result<(), TransferError> {
    let (first, after, _) = place.position(plans);
    for (number, plan) in plans.iter().enumerate().skip(first) {
        let before_all = plan.before_all();
        let after = after.filter(|_| number == first).unwrap_or(&before_all);
        let mut batch = Batch::new(number, plan);
        let mut wanted = true;
        origin.walk(plan, after, &mut |row| {
            batch.push(plan, row)?;
            if batch.count >= BATCH_ROWS || batch.bytes >= BATCH_BYTES {
                let full = std::mem::replace(&mut batch, Batch::new(number, plan));
                wanted = send.send(full).is_ok();
            }
            Ok(wanted)
        })?;
        if !wanted || batch.count > 0 && send.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

impl Batch {
    fn new(table: usize, plan: &Plan) -> Self {
        let rows = Rows::of(&plan.kinds);
        Self { table, rows, count: 0, last: Vec::new(), numbers: Vec::new(), bytes: 0 }
    }

    fn push(&mut self, plan: &Plan, row: &Row<'_>) -> crate::source::Result<()> {
        let mut values = Vec::with_capacity(plan.kinds.len());
        for place in 0..plan.kinds.len() {
            values.push(match row.cell(place)? {
                Cell::Null => Value::Null,
                Cell::Integer(number) => Value::Integer(number),
                Cell::Text(text) => {
                    self.bytes += text.len();
                    Value::Text(Cow::Owned(storable(text).into_owned()))
                }
                Cell::Blob(bytes) => {
                    self.bytes += bytes.len();
                    Value::Blob(Cow::Owned(bytes.to_vec()))
                }
            });
        }
        self.rows.push_all(values.into_iter());
        self.count += 1;
        self.last.clear();
        for place in plan.key() {
            self.last.push(Key::of(row.cell(*place)?));
        }
        if let Some(place) = plan.partition {
            self.numbers.extend(i64::from_cell(row.cell(place)?));
        }
        Ok(())
    }
}
