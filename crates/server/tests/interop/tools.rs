//! Where the tools of other languages are that some tests use. `cargo xtask test` installs them and says where.
#![allow(dead_code, reason = "each test takes the tools it needs")]

use std::path::{Path, PathBuf};

/// A Python that has the packages of `requirements.txt`.
pub(crate) fn python() -> PathBuf {
    find("XTASK_PYTHON", "python/bin/python")
}

/// The packages of `package.json`, for Node.js.
pub(crate) fn node_modules() -> PathBuf {
    find("XTASK_NODE_MODULES", "node/node_modules")
}

/// A file that lies beside this one.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name)
}

/// What the environment names, or what an earlier `cargo xtask test` left below `target/`. A test without its tools fails:
/// one that was skipped would look like one that passed.
fn find(variable: &str, usual_place: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target folder");
    let usual = || target.join("test-tools").join(usual_place);
    let path = std::env::var_os(variable).map_or_else(usual, PathBuf::from);
    assert!(
        path.exists(),
        "{} is not there: run `cargo xtask test`, which installs it and sets {variable}",
        path.display()
    );
    path
}
