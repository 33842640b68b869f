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

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, if rig.is_short() { Load::usual() } else { Load::heavy() });
    let began = now();
    // The short form counts seconds, the long one events.
    loop {
        let seconds = began.elapsed().as_secs();
        let goes_on = match rig.wanted.events {
            Some(events) if !rig.is_short() => run.ledger.accepted() < events,
            _ => rig.goes_on(seconds, 5, None),
        };
        if !goes_on {
            break;
        }
        pass(millis(100)).await;
    }
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}
