//! A second server on the same data is refused, with a word about it, and harms nothing; when the first is gone it may.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::Scenario;
use crate::clock::{millis, pass, secs};
use crate::history::History;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting};
use crate::server::{Launch, Server};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "second-process",
    about: "a second server on the same data",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Whole)).await?;
    run.produce(rig, Load::usual());
    let home = rig.home.join("second");
    std::fs::create_dir_all(&home)?;
    let history = Arc::new(History::begin(&home)?);
    let mut second = Server::new(&rig.binary, &home, &run.server.data_dir, &history)?;
    let mut refused = 0;
    while rig.goes_on(refused, 3, None) {
        pass(millis(rig.dice.below(400))).await;
        second.spawn(&Launch::plain())?;
        let status = second.end(secs(60)).await?;
        let log = second.log_tail();
        ensure!(status.code() == Some(2) && log.contains("in use by another process"), "{status}: {log}");
        ensure!(run.is_ready().await, "the first is not ready any more");
        refused += 1;
        if !rig.is_short() && refused % 10 == 0 {
            run.kill().await?;
            run.server.start(&Launch::plain()).await?;
        }
    }
    rig.count("seconds refused", refused);
    run.finish(rig).await?;
    second.start(&Launch::plain()).await?;
    second.terminate()?;
    ensure!(second.end(secs(60)).await?.success(), "the second does not stop well: {}", second.log_tail());
    Ok(Outcome::Passed)
}
