//! The server killed fifty times at random moments under load: the test `crash` of the server, with the release binary.

use std::process::Command;

use anyhow::{Context, Result};

use super::Bench;
use crate::row::{Bound, Row};

const KILLS: u32 = 50;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "tidegate", "--test", "crash", "--", "--nocapture"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("XTASK_KILLS", KILLS.to_string())
        .env("XTASK_BINARY", &bench.place.binary)
        .status()
        .context("cannot run the test")?;
    let held = if status.success() { f64::from(KILLS) } else { 0.0 };
    Ok(vec![
        Row::note("kill -9 under load: survived", held, "times").required(Bound::AtLeast(f64::from(KILLS))),
    ])
}
