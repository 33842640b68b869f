//! The table of bugs: `xtask/planted.toml`, read and checked against the sources.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A bug that may be planted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bug {
    /// What it is called.
    pub(crate) name: String,
    /// Which promise it breaks.
    pub(crate) breaks: String,
    /// The file that it is in.
    pub(crate) file: String,
    /// What stands there: once.
    pub(crate) original: String,
    /// What stands there instead.
    pub(crate) planted: String,
    /// What must notice: the arguments of `cargo test`.
    pub(crate) test: String,
    /// What the test must have said when it failed: all of these. Nothing: any failure will do.
    #[serde(default)]
    pub(crate) says: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    bug: Vec<Bug>,
}

/// All bugs of the table.
pub(crate) fn read() -> Result<Vec<Bug>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("planted.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: Table =
        toml::from_str(&text).with_context(|| format!("{} is no table of bugs", path.display()))?;
    Ok(table.bug)
}

impl Bug {
    /// The text of its file below `root`, with the bug in it.
    pub(crate) fn plant(&self, root: &Path) -> Result<String> {
        let path = root.join(&self.file);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{}: cannot read {}", self.name, path.display()))?;
        match text.matches(&self.original).count() {
            1 if self.original != self.planted => Ok(text.replace(&self.original, &self.planted)),
            1 => bail!("{}: what is planted is what was there", self.name),
            times => bail!("{}: its original stands {times} times in {}, not once", self.name, self.file),
        }
    }
}
