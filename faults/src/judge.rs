//! Judges a run by its histories.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::rig::Rig;

/// What does not hold, by the names of the invariants.
#[derive(Debug)]
pub(crate) struct Violations(Vec<(String, String)>);

impl Violations {
    /// Whether one of them is of this invariant.
    pub(crate) fn are_of(&self, invariant: &str) -> bool {
        self.0.iter().any(|(name, _)| name == invariant)
    }
}

impl std::fmt::Display for Violations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.0.first().map(|(name, what)| format!("{name}: {what}")).unwrap_or_default();
        write!(f, "{} violations, such as {first}", self.0.len())
    }
}

impl std::error::Error for Violations {}

/// Nothing that was accepted may be absent or open.
pub(crate) fn judge(home: &Path, _rig: &mut Rig) -> Result<()> {
    let lines = |name: &str| -> Result<Vec<Value>> {
        let text = fs::read_to_string(home.join(name))?;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    };
    let mut accepted = HashSet::new();
    for line in lines("producer.jsonl")? {
        for id in line["ids"].as_array().into_iter().flatten() {
            accepted.insert(id.as_str().unwrap_or_default().to_owned());
        }
    }
    let mut shown = HashMap::new();
    for line in lines("api.jsonl")?.into_iter().filter(|line| line["kind"] == "event") {
        shown.insert(line["body"]["id"].as_str().unwrap_or_default().to_owned(), line["body"]["status"].clone());
    }
    let mut violations = Vec::new();
    for id in accepted {
        let status = shown.get(&id).and_then(Value::as_str);
        if !matches!(status, Some("delivered" | "dead_letter" | "expired" | "cancelled")) {
            violations.push(("I1".to_owned(), format!("{id} was accepted and is {status:?}")));
        }
    }
    ensure!(violations.is_empty(), Violations(violations));
    Ok(())
}
