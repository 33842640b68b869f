//! No fault at all: nothing comes twice, and every bound holds.

use anyhow::Result;

use super::Scenario;
use crate::clock::{millis, now, pass};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "calm",
    about: "no fault: nothing comes twice",
    share: 2,
    run: |rig| Box::pin(run(rig)),
};

/// Seconds of the short form.
const SHORT: u64 = 10;
/// Then the two that are alike get a backlog each: when the checker takes nothing to be disturbed by the start any more.
const TWINS_AT: u64 = 6;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    // With as much as is accepted there is a crowd somewhere all the time.
    let silent_about: &[&str] = if rig.is_short() { &[] } else { &["I15"] };
    let setting = Setting { silent_about, ..Setting::new("", Cast::Twins) };
    let mut run = Run::begin(rig, setting).await?;
    run.produce(rig, if rig.is_short() { Load::usual() } else { Load::heavy() });
    let began = now();
    let mut twins = Some(Load::twins());
    // The short form counts seconds, the long one events.
    loop {
        let seconds = began.elapsed().as_secs();
        let goes_on = match rig.wanted.events {
            Some(events) if !rig.is_short() => run.ledger.accepted() < events,
            _ => rig.goes_on(seconds, SHORT, None),
        };
        if !goes_on {
            break;
        }
        if let Some(load) = twins.take_if(|_| seconds >= TWINS_AT) {
            run.produce(rig, load);
        }
        pass(millis(100)).await;
    }
    run.finish_now(rig).await?;
    Ok(Outcome::Passed)
}
