//! Fills a store through the API with destinations that are held and deliveries that wait behind them.
//!
//! Destinations come in groups of 250 that all get the same events, so that one event makes 250 deliveries.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Result;
use jiff::{SignedDuration, tz::TimeZone};
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use crate::api::Api;
use crate::service::{KEY, Service};
use crate::stopwatch::wall;

/// Destinations that get the same events.
pub(crate) const GROUP: u64 = 250;
const CONNECTIONS: usize = 32;

/// Why the deliveries of a group wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Paused,
    QuietHours,
    /// Each event has a `deliver_at` of its own.
    Scheduled,
    /// The destination answered 429 with a long `Retry-After`.
    Throttled,
}

/// What to fill a store with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) groups: u64,
    /// Events for each group.
    pub(crate) events: u64,
    /// The groups take these in turn.
    pub(crate) why: &'static [Why],
}

impl Fill {
    fn why(&self, group: u64) -> Why {
        self.why[usize::try_from(group).unwrap_or(0) % self.why.len()]
    }

    /// Makes the destinations, holds them, and publishes.
    pub(crate) async fn apply(self, service: &Service, sink: &str) -> Result<()> {
        let sink = sink.to_owned();
        each(&service.address, self.groups * GROUP, async move |api, index| {
            let (group, why) = (index / GROUP, self.why(index / GROUP));
            let behaviour = if why == Why::Throttled { "throttle" } else { "ok" };
            let extra =
                if why == Why::QuietHours { json!({"delivery_schedule": quiet_now()}) } else { json!({}) };
            let url = format!("http://{sink}/{behaviour}/{index}");
            let id = api.destination(&url, &format!("fill.{group:05}"), &extra).await?;
            if why == Why::Paused {
                api.must("POST", &format!("/v1/destinations/{id}/pause"), &json!({})).await?;
            }
            Ok(())
        })
        .await?;
        // Batches of 20 events: 5,000 deliveries in a commit.
        const BATCH: u64 = 20;
        let batches = self.events.div_ceil(BATCH);
        each(&service.address, self.groups * batches, async move |api, index| {
            let (group, batch) = (index % self.groups, index / self.groups);
            let events: Vec<Value> = (batch * BATCH..self.events.min((batch + 1) * BATCH))
                .map(|number| self.event(group, number))
                .collect();
            api.must("POST", "/v1/outbound-events/batch", &json!({"events": events})).await?;
            Ok(())
        })
        .await
    }

    fn event(&self, group: u64, number: u64) -> Value {
        let mut event =
            json!({"event_type": format!("fill.{group:05}"), "payload": {"n": number, "pad": "some words"}});
        if self.why(group) == Why::Scheduled {
            let minutes = i64::try_from(number).unwrap_or(0);
            let at = wall() + SignedDuration::from_hours(24 * 30) + SignedDuration::from_mins(minutes);
            event["deliver_at"] = json!(format!("{at:.3}"));
        }
        event
    }
}

/// A window that began two hours ago and goes on for twenty.
fn quiet_now() -> Value {
    let local = |hours| {
        (wall() + SignedDuration::from_hours(hours)).to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
    };
    json!({"timezone": "UTC", "quiet_start": local(-2), "quiet_end": local(20)})
}

/// Does something for each index below `count`, over several connections at a time.
async fn each(
    address: &str,
    count: u64,
    act: impl AsyncFn(&mut Api, u64) -> Result<()> + Clone + 'static,
) -> Result<()> {
    let (local, mut tasks, next) = (LocalSet::new(), JoinSet::new(), Rc::new(Cell::new(0)));
    for _ in 0..CONNECTIONS {
        let (mut api, act, next) = (Api::connect(address, KEY).await?, act.clone(), next.clone());
        let work = async move {
            while next.get() < count {
                let index = next.replace(next.get() + 1);
                act(&mut api, index).await?;
            }
            anyhow::Ok(())
        };
        tasks.spawn_local_on(work, &local);
    }
    local
        .run_until(async {
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok(())
        })
        .await
}
