//! CPU of a server with nothing to do but to hold: 1,000 destinations paused, in quiet hours or throttled, with deliveries
//! waiting behind each.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::child::helper;
use crate::fill::{Fill, Why};
use crate::row::{Bound, Row};
use crate::service::Service;
use crate::stopwatch::now;

const SETTLE: Duration = Duration::from_secs(5);
const TIME: Duration = Duration::from_secs(20);

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (_sink, sink) = helper(bench.stack, &["sink"])?;
    let service = Service::start(&bench.place, "quiet").await?;
    let why = &[Why::Paused, Why::QuietHours, Why::Throttled, Why::Paused];
    Fill { groups: 4, events: 20, why }.apply(&service, &sink).await?;
    tokio::time::sleep(SETTLE).await;
    let (began, before) = (now(), service.process.cpu_seconds());
    tokio::time::sleep(TIME).await;
    let used = service.process.cpu_seconds() - before;
    let share = 100.0 * used / began.elapsed().as_secs_f64();
    Ok(vec![Row::note("1,000 held destinations: share of a core", share, "%").required(Bound::AtMost(1.0))])
}
