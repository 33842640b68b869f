//! `tidegate doctor`: looks at what a server needs, and says how to mend what is wrong.

mod checks;
mod server;

use std::fmt::Write as _;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::serve::Settings;
use super::{Ended, say};
use crate::config::Config;

/// What one look found.
pub(super) struct Finding {
    /// At what.
    about: &'static str,
    /// What is there.
    seen: String,
    /// What to do about it, if it is wrong.
    mend: Mend,
}

/// Whether something must be done.
enum Mend {
    /// All is well.
    Nothing,
    /// It works, but could be better.
    Better(String),
    /// It will not work.
    Needed(String),
}

impl Finding {
    fn well(about: &'static str, seen: impl Into<String>) -> Self {
        Self { about, seen: seen.into(), mend: Mend::Nothing }
    }
    fn better(about: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, seen: seen.into(), mend: Mend::Better(mend.into()) }
    }
    fn wrong(about: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, seen: seen.into(), mend: Mend::Needed(mend.into()) }
    }
}

pub(super) fn run(settings: &Settings) -> anyhow::Result<Ended> {
    let config = match Config::new(&settings.layers()) {
        Ok(config) => config,
        Err(problems) => {
            let finding = Finding::wrong("configuration", problems.to_string(), "correct these settings");
            say(&show(&[finding]))?;
            return Ok(Ended::DoesNotHold);
        }
    };
    let mut findings = vec![Finding::well("configuration", "every setting can be read")];
    let (found, in_use) = checks::all(&config);
    findings.extend(found);
    findings.push(server::check(&config, in_use));
    say(&show(&findings))?;
    let wrong = findings.iter().any(|finding| matches!(finding.mend, Mend::Needed(_)));
    Ok(if wrong { Ended::DoesNotHold } else { Ended::Well })
}

fn show(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (mark, mend) = match &finding.mend {
            Mend::Nothing => ("ok   ", None),
            Mend::Better(mend) => ("note ", Some(mend)),
            Mend::Needed(mend) => ("WRONG", Some(mend)),
        };
        let _ = writeln!(
            text,
            "{mark}  {:<16} {}",
            finding.about,
            finding.seen.replace('\n', "\n                         ")
        );
        if let Some(mend) = mend {
            let _ = writeln!(text, "       {:<16} → {mend}", "");
        }
    }
    text
}

/// Each connection needs a handle: takes as many as the system allows.
pub(super) fn raise_handle_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!(limit = ?limit.current, "the limit of open files cannot be raised");
    }
}
