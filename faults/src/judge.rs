//! Judges a run by its histories.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::rig::Rig;

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
    for id in accepted {
        let status = shown.get(&id).and_then(Value::as_str);
        ensure!(
            matches!(status, Some("delivered" | "dead_letter" | "expired" | "cancelled")),
            "{id} was accepted and is {status:?}"
        );
    }
    Ok(())
}
