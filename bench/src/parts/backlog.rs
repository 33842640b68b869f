//! Millions of deliveries that wait in PostgreSQL: fresh events beside them; a second node that starts, and then takes over
//! everything when the first is killed; and one that starts when the last has stopped.

use anyhow::Result;

use super::Bench;
use super::nodes::wait_for;
use super::scale::{Filled, beside_empty, one_arrives};
use crate::api::reset_sink;
use crate::row::{Bound, Row};
use crate::stopwatch::now;

/// Of all destinations.
const SLOTS: u64 = 256;
/// The most that a start and the take-over of everything may take, in seconds.
const MOST: f64 = 10.0;
/// The most that a take-over from a node that was killed may take: its lease has to end, and then it is a matter of moments.
const MOST_AFTER_DEATH: f64 = 12.0;

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (bench, database) = bench.on_postgres()?;
    let bench = Bench { scale: bench.backlog, ..bench };
    let empty = database.bytes()?;
    let Filled { mut service, sink, mut rows, receiver: _receiver } = beside_empty(&bench).await?;
    for row in &mut rows {
        row.what = row.what.replace("scale:", "backlog:");
    }
    let per_delivery = (database.bytes()? - empty) / bench.scale as f64;
    let began = now();
    let mut second = service.start_beside("second").await?;
    let started = began.elapsed().as_secs_f64();
    let mut api = second.api().await?;
    wait_for(&mut api, |slots| slots.iter().filter(|slots| **slots > 0).count() == 2).await?;
    let shared = began.elapsed().as_secs_f64();
    reset_sink(&sink, 1).await?;
    service.process.end();
    let began = now();
    wait_for(&mut api, |slots| slots.contains(&SLOTS)).await?;
    let taken = began.elapsed().as_secs_f64();
    one_arrives(&bench, &second, &sink).await?;
    let delivered = began.elapsed().as_secs_f64();
    reset_sink(&sink, 1).await?;
    second.process.stop();
    let began = now();
    let third = service.start_beside("third").await?;
    wait_for(&mut third.api().await?, |slots| slots.contains(&SLOTS)).await?;
    let alone = began.elapsed().as_secs_f64();
    one_arrives(&bench, &third, &sink).await?;
    let alone_delivered = began.elapsed().as_secs_f64();
    rows.extend([
        Row::note("backlog: bytes in the database for each delivery that waits", per_delivery, ""),
        Row::note("backlog: start of a second node, until ready", started, "s").required(Bound::AtMost(MOST)),
        Row::note("backlog: … until it works its share", shared, "s"),
        Row::note("backlog: kill -9 of the first, until the second has all slots", taken, "s")
            .required(Bound::AtMost(MOST_AFTER_DEATH)),
        Row::note("backlog: … until a fresh event is received", delivered, "s")
            .required(Bound::AtMost(MOST_AFTER_DEATH)),
        Row::note("backlog: start after the last node has stopped, until it has all slots", alone, "s")
            .required(Bound::AtMost(MOST)),
        Row::note("backlog: … until a fresh event is received", alone_delivered, "s")
            .required(Bound::AtMost(MOST)),
    ]);
    Ok(rows)
}
