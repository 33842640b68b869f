//! Data of another version: an older schema is brought up to date, a newer one and a file of another program are refused and
//! left as they are.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::Scenario;
use crate::clock::secs;
use crate::database::{self, FILE};
use crate::history::History;
use crate::producer::Load;
use crate::rig::{Outcome, Rig};
use crate::run::{Run, Setting, copy_directory};
use crate::server::{Launch, Server};
use crate::world::Cast;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "schema",
    about: "an older schema migrates; a newer one and another program's file are refused and unchanged",
    share: 1,
    run: |rig| Box::pin(run(rig)),
};

async fn run(rig: &mut Rig) -> Result<Outcome> {
    let mut run = Run::begin(rig, Setting::new("", Cast::Small)).await?;
    run.produce(rig, Load::little(6));
    run.published().await?;
    run.stop().await?;
    let data = run.server.data_dir.clone();
    let known = database::pragma(&data, "user_version")?;
    refused(rig, &data, "newer", ("user_version", known + 1), "start a newer binary").await?;
    refused(rig, &data, "foreign", ("application_id", 7), "belongs to another program").await?;
    oldest_migrates(rig, known).await?;
    rig.count("refused", 2);
    rig.count("brought up to date", 1);
    run.server.start(&Launch::plain()).await?;
    run.finish(rig).await?;
    Ok(Outcome::Passed)
}

/// A copy of the data with another number in its header.
async fn refused(rig: &Rig, data: &Path, name: &str, header: (&str, i64), word: &str) -> Result<()> {
    let home = rig.home.join(name);
    copy_directory(data, &home.join("data"))?;
    database::set_pragma(&home.join("data"), header.0, header.1)?;
    let before = fs::read(home.join("data").join(FILE))?;
    let history = Arc::new(History::begin(&home)?);
    let mut server = Server::new(&rig.binary, &home, &home.join("data"), &history)?;
    server.spawn(&Launch::plain())?;
    let status = server.end(secs(60)).await?;
    let log = server.log_tail();
    ensure!(status.code() == Some(2) && log.contains(word), "{name}: {status}: {log}");
    ensure!(fs::read(home.join("data").join(FILE))? == before, "{name}: it was changed");
    Ok(())
}

/// The oldest schema is none at all: a file that is there and has no tables.
async fn oldest_migrates(rig: &Rig, known: i64) -> Result<()> {
    let home = rig.home.join("oldest");
    fs::create_dir_all(home.join("data"))?;
    database::set_pragma(&home.join("data"), "page_size", 4_096)?;
    database::set_pragma(&home.join("data"), "user_version", 0)?;
    let history = Arc::new(History::begin(&home)?);
    let mut server = Server::new(&rig.binary, &home, &home.join("data"), &history)?;
    server.start(&Launch::plain()).await?;
    server.terminate()?;
    ensure!(server.end(secs(60)).await?.success(), "it does not stop well: {}", server.log_tail());
    ensure!(database::pragma(&home.join("data"), "user_version")? == known, "it is not up to date");
    Ok(())
}
