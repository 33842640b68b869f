//! `cargo xtask bench`: measures what is promised about speed.

use anyhow::Result;

use crate::{cargo, run};

/// The server is measured as it is shipped, so it is built first.
pub(crate) fn run_with(arguments: &[String]) -> Result<()> {
    run(cargo().args(["build", "--release", "--package", "tidegate"]))?;
    run(cargo().args(["run", "--quiet", "--release", "--package", "tidegate-bench", "--"]).args(arguments))
}
