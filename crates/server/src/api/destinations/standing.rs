//! What a person wants of a lane, and what watchers are told of it.

use tidegate_core::lane::Standing;
use tidegate_engine::dispatcher::Command;
use tidegate_store::catalogue::AuditEntry;

use crate::api::App;
use crate::api::error::ApiError;
use crate::api::told::Told;
use crate::catalogue::DestinationEntry;

/// Whether a lane sends, and how many of its lines stand.
type Seen = (Option<Standing>, usize);

/// Carries out a command together with its line in the audit log, if that has none yet, and tells what it changed.
pub(super) async fn command(
    app: &App,
    entry: &DestinationEntry,
    command: Command,
    audit: Option<AuditEntry>,
) -> Result<(), ApiError> {
    let before = see(app, entry).await?;
    app.engine.command(entry.row.no, command, audit).await?;
    let after = see(app, entry).await?;
    if let Some(change) = change(before, after) {
        let at = app.engine.now().wall;
        app.told.tell(Told::of_destination(entry.row.account, entry.row.no, at, change));
    }
    Ok(())
}

/// Whether it is switched off.
pub(super) async fn is_disabled(app: &App, entry: &DestinationEntry) -> Result<bool, ApiError> {
    Ok(see(app, entry).await?.0.is_some_and(|standing| standing.disabled.is_some()))
}

async fn see(app: &App, entry: &DestinationEntry) -> Result<Seen, ApiError> {
    let no = entry.row.no;
    let look = app.engine.look_at([no], move |view| {
        let lane = view.lane(no);
        (lane.map(|lane| lane.state().standing), lane.map_or(0, |lane| lane.halted().len()))
    });
    Ok(look.await?)
}

/// What watchers are told: a word and a sentence.
fn change(before: Seen, after: Seen) -> Option<(&'static str, &'static str)> {
    let seen = |(standing, _): Seen| {
        standing.map(|Standing { disabled, paused }| (disabled.is_some(), paused.is_some()))
    };
    match (seen(before)?, seen(after)?) {
        ((false, _), (true, _)) => {
            Some(("disabled", "a person switched it off; enabling it releases what waits"))
        }
        ((true, _), (false, _)) => Some(("enabled", "a person switched it on; what waits may go")),
        ((_, false), (_, true)) => Some(("paused", "a person paused it; resuming it releases what waits")),
        ((_, true), (_, false)) => Some(("resumed", "a person resumed it; what waits may go")),
        _ if after.1 < before.1 => Some(("resumed", "a person let its lines go on; what waits may go")),
        _ => None,
    }
}
