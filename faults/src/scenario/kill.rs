//! `kill -9` at random moments under load, also in the first 50 ms of a life.

use anyhow::Result;

use super::Scenario;
use crate::clock::{millis, pass};
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::Launch;
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "kill",
    about: "kill -9 at random moments under load, also while it starts",
    share: 6,
    run: |rig| Box::pin(run(rig)),
};

/// Kills of the short form.
const SHORT: u64 = 8;
/// After so many, one that waits longer than the checker allows for a result to be stored.
const LONG_LIFE: u64 = 4;
const LONG_LIFE_MS: u64 = 3_000;

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, if rig.is_short() { Load::usual() } else { Load::heavy() });
    let mut kills = 0;
    // Both figures that were asked for are to be reached.
    while rig.goes_on(kills, SHORT, rig.wanted.kills)
        || (!rig.is_short() && rig.wanted.events.is_some_and(|events| run.ledger.accepted() < events))
    {
        // One life is long enough for what was learned in it to be stored for certain.
        let long = kills == LONG_LIFE;
        let early = !long && rig.dice.one_in(5);
        let longest = match (early, rig.is_short()) {
            (true, _) => 50,
            (false, true) => 1_000,
            (false, false) => 3_000,
        };
        if !early {
            run.server.ready().await?;
        }
        pass(millis(if long { LONG_LIFE_MS } else { rig.dice.below(longest) })).await;
        run.kill().await?;
        kills += 1;
        run.server.spawn(&Launch::plain())?;
    }
    rig.count("kills", kills);
    run.server.ready().await?;
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}
