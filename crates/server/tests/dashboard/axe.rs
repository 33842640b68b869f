//! What axe-core, the usual checker of accessibility, finds serious on a page.

use serde_json::Value;

use super::browser::Browser;
use super::tools;

/// The faults of the page that is shown, each with where it is.
pub(crate) async fn serious(browser: &Browser) -> Vec<String> {
    let source = std::fs::read_to_string(tools::node_modules().join("axe-core/axe.min.js"))
        .expect("axe-core is installed");
    browser.run(&source).await;
    let script = "const done = arguments[arguments.length - 1];\
        axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations), error => done([{id: String(error), impact: 'critical', nodes: []}]));";
    let found = browser.run_later(script).await;
    let all = found.as_array().cloned().unwrap_or_default();
    let serious = all.iter().filter(|fault| matches!(fault["impact"].as_str(), Some("serious" | "critical")));
    serious.map(words).collect()
}

fn words(fault: &Value) -> String {
    let nodes = fault["nodes"].as_array().cloned().unwrap_or_default();
    let places: Vec<String> =
        nodes.iter().take(3).map(|node| format!("{} {}", node["html"], node["failureSummary"])).collect();
    format!("{}: {}", fault["id"], places.join(" | "))
}
