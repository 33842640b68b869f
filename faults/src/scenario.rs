//! The scenarios, one file each: what is done to a server, and what must hold besides what its histories tell.

mod calm;
mod clock;
mod crash_loop;
mod damage;
mod disk_full;
mod fsync_error;
mod kill;
mod limits;
mod poison;
mod power_cut;
mod removed;
mod schema;
mod second_process;
mod sigterm;
mod slow_disk;
mod syscalls;

use anyhow::{Context, Result};
use futures_util::future::LocalBoxFuture;

use crate::rig::{Outcome, Rig};

/// One way to break a server.
pub(crate) struct Scenario {
    /// What `--only` takes.
    pub(crate) name: &'static str,
    /// What is done, in a line.
    pub(crate) about: &'static str,
    /// Its part of the time of a long run, compared with the others.
    pub(crate) share: u64,
    pub(crate) run: for<'a> fn(&'a mut Rig) -> LocalBoxFuture<'a, Result<Outcome>>,
}

/// All of them, in the order in which they run.
const ALL: &[&Scenario] = &[
    &calm::SCENARIO,
    &kill::SCENARIO,
    &syscalls::SCENARIO,
    &crash_loop::SCENARIO,
    &poison::SCENARIO,
    &power_cut::SCENARIO,
    &fsync_error::SCENARIO,
    &disk_full::SCENARIO,
    &slow_disk::SCENARIO,
    &damage::SCENARIO,
    &removed::SCENARIO,
    &second_process::SCENARIO,
    &clock::SCENARIO,
    &limits::SCENARIO,
    &sigterm::SCENARIO,
    &schema::SCENARIO,
];

/// Those with these names; without any, all.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let find = |name: &String| {
        let found = ALL.iter().find(|scenario| scenario.name == name).copied();
        found.with_context(|| format!("there is no scenario {name}: --list names them"))
    };
    names.iter().map(find).collect()
}
