//! `cargo xtask test`: every test of the workspace, with the tools of other languages that some of them use.

use anyhow::Result;

use crate::tools::Tools;
use crate::{cargo, run};

/// Tests of the API that run a second time, with servers on PostgreSQL.
const ON_BOTH_STORES: &[&str] =
    &["abuse", "deliveries", "destinations", "explain", "publish", "replays", "schedules"];
/// What is left out then: it takes half a minute of waiting for connections to be closed, and no store is asked.
const ON_ONE_STORE: &str = "slow::";

/// With this a test that cannot run here fails: what it needs was installed before.
pub(crate) const MUST_RUN: &str = "XTASK_MUST_RUN";

/// Installs what is missing, then runs the tests. They learn from the environment where the tools are; what has to run
/// beside them, servers and receivers, each test starts and ends itself.
pub(crate) fn run_all() -> Result<()> {
    let tools = Tools::install()?;
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    tests.env(MUST_RUN, "1");
    tests.env("XTASK_PYTHON", &tools.python);
    tests.env("XTASK_NODE_MODULES", &tools.node_modules);
    run(&mut tests)?;
    let mut on_postgres = cargo();
    on_postgres.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    on_postgres.args(ON_BOTH_STORES.iter().flat_map(|name| ["--test", name]));
    on_postgres.args(["--", "--skip", ON_ONE_STORE]);
    on_postgres.env(MUST_RUN, "1").env("XTASK_STORE", "postgres");
    run(&mut on_postgres)?;
    crate::faults::run_whole()
}
